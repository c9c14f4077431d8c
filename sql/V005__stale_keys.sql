-- A message is written with its own words alone, for somebody waits for its answer. The worker
-- then makes the keys anew that it takes part in: its own, with its neighbours, and theirs.
ALTER TABLE message_terms ADD COLUMN stale boolean NOT NULL DEFAULT false;
CREATE INDEX message_terms_stale ON message_terms (user_id, message_id) WHERE stale;
