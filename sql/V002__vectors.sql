-- Vectors and words of memories, messages and passages, apart from their owners: an access
-- count must not touch an index. Each row goes with its owner.

-- Vectors of any dimension. A row without a vector says that it could not be made, and why, so
-- that the worker does not try for ever. Up to about 1,900 numbers a vector lies in the row
-- itself: an exact scan then reads no second table.
CREATE TABLE memory_vectors (
    user_id   bigint NOT NULL,
    memory_id bigint NOT NULL,
    model_id  bigint NOT NULL REFERENCES embedding_models ON DELETE CASCADE,
    embedding vector,
    attempts  int  NOT NULL DEFAULT 0,
    error     text NOT NULL DEFAULT '',
    retry_at  timestamptz,
    PRIMARY KEY (user_id, memory_id, model_id),
    FOREIGN KEY (user_id, memory_id) REFERENCES memories ON DELETE CASCADE
) WITH (toast_tuple_target = 8160);
ALTER TABLE memory_vectors ALTER COLUMN embedding SET STORAGE EXTERNAL;

CREATE TABLE message_vectors (
    user_id    bigint NOT NULL,
    message_id bigint NOT NULL,
    model_id   bigint NOT NULL REFERENCES embedding_models ON DELETE CASCADE,
    -- 0: the message; 1: it with its neighbours; 2: it with the facts extracted from it.
    -- Only a user's message has the latter two: an answer is found with its question.
    key        smallint NOT NULL CHECK (key BETWEEN 0 AND 2),
    embedding  vector,
    attempts   int  NOT NULL DEFAULT 0,
    error      text NOT NULL DEFAULT '',
    retry_at   timestamptz,
    PRIMARY KEY (user_id, message_id, model_id, key),
    FOREIGN KEY (user_id, message_id) REFERENCES messages ON DELETE CASCADE
) WITH (toast_tuple_target = 8160);
ALTER TABLE message_vectors ALTER COLUMN embedding SET STORAGE EXTERNAL;

CREATE TABLE chunk_vectors (
    user_id   bigint NOT NULL,
    chunk_id  bigint NOT NULL,
    model_id  bigint NOT NULL REFERENCES embedding_models ON DELETE CASCADE,
    embedding vector,
    attempts  int  NOT NULL DEFAULT 0,
    error     text NOT NULL DEFAULT '',
    retry_at  timestamptz,
    PRIMARY KEY (user_id, chunk_id, model_id),
    FOREIGN KEY (user_id, chunk_id) REFERENCES chunks ON DELETE CASCADE
) WITH (toast_tuple_target = 8160);
ALTER TABLE chunk_vectors ALTER COLUMN embedding SET STORAGE EXTERNAL;

-- Words. A term is a hash of its user and its stem, so that one index serves all users and finds
-- only one's own rows. `terms` finds candidates; `weights` holds BM25's part of the row itself
-- (saturated, length-normalised frequencies), so that an inner product with the question's
-- inverse document frequencies is the score.
CREATE TABLE memory_terms (
    user_id   bigint NOT NULL,
    memory_id bigint NOT NULL,
    language  text   NOT NULL,
    terms     int[]  NOT NULL,
    weights   sparsevec NOT NULL,
    PRIMARY KEY (user_id, memory_id),
    FOREIGN KEY (user_id, memory_id) REFERENCES memories ON DELETE CASCADE
) WITH (toast_tuple_target = 8160);
CREATE INDEX memory_terms_by_term ON memory_terms USING gin (terms) WITH (fastupdate = off);

-- `counts` holds the message's own frequencies; `terms` and `weights`, of a user's message, those
-- of the message with its neighbours.
CREATE TABLE message_terms (
    user_id    bigint NOT NULL,
    message_id bigint NOT NULL,
    language   text   NOT NULL,
    counts     sparsevec NOT NULL,
    terms      int[]  NOT NULL DEFAULT '{}',
    weights    sparsevec,
    PRIMARY KEY (user_id, message_id),
    FOREIGN KEY (user_id, message_id) REFERENCES messages ON DELETE CASCADE
) WITH (toast_tuple_target = 8160);
CREATE INDEX message_terms_by_term ON message_terms USING gin (terms) WITH (fastupdate = off);

CREATE TABLE chunk_terms (
    user_id  bigint NOT NULL,
    chunk_id bigint NOT NULL,
    language text   NOT NULL,
    terms    int[]  NOT NULL,
    weights  sparsevec NOT NULL,
    PRIMARY KEY (user_id, chunk_id),
    FOREIGN KEY (user_id, chunk_id) REFERENCES chunks ON DELETE CASCADE
) WITH (toast_tuple_target = 8160);
CREATE INDEX chunk_terms_by_term ON chunk_terms USING gin (terms) WITH (fastupdate = off);

ALTER TABLE memory_terms  ALTER COLUMN weights SET STORAGE EXTERNAL;
ALTER TABLE message_terms ALTER COLUMN weights SET STORAGE EXTERNAL;
ALTER TABLE chunk_terms   ALTER COLUMN weights SET STORAGE EXTERNAL;

-- What the worker counted. A user's small store has no row here: it is counted when asked.
CREATE TABLE term_statistics (
    user_id    bigint NOT NULL REFERENCES users ON DELETE CASCADE,
    kind       text   NOT NULL CHECK (kind IN ('memory', 'turn', 'chunk')),
    total      bigint NOT NULL, -- rows
    last_id    bigint NOT NULL, -- the newest row that was counted
    counted_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_id, kind)
);

-- Rows that hold a term; only of terms frequent enough that counting them at once would be slow.
CREATE TABLE term_frequencies (
    user_id bigint NOT NULL,
    kind    text   NOT NULL,
    term    int    NOT NULL,
    total   bigint NOT NULL,
    PRIMARY KEY (user_id, kind, term),
    FOREIGN KEY (user_id, kind) REFERENCES term_statistics ON DELETE CASCADE
);

-- The language whose stemmer made a user's stored terms.
CREATE TABLE term_languages (
    user_id  bigint NOT NULL REFERENCES users ON DELETE CASCADE PRIMARY KEY,
    language text   NOT NULL
);

-- What searches and lists filter by. An access count touches none of these columns.
CREATE INDEX memories_by_category ON memories (user_id, lower(category));
CREATE INDEX memories_by_type ON memories (user_id, type);
CREATE INDEX memories_by_time ON memories (user_id, created_at);
CREATE INDEX messages_by_time ON messages (user_id, created_at);
