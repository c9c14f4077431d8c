-- Who may see whose rows, kept by the server and not by the program.
--
-- Every table of people's rows is under row-level security, forced, so that it binds the owner
-- too. Two policies stand on each: "everyone" names the roles that see all (the owner; the role
-- of daily work where one role serves all, and then --user is a profile and no boundary), "own"
-- lets any other role at the rows of those users that role_users gives to it.
--
-- The policy of "everyone" is the constant true on purpose: the planner drops it, and with it
-- the barrier that would keep words and vectors from being found by their indexes.

CREATE TABLE role_users (
    user_id   bigint NOT NULL REFERENCES users ON DELETE CASCADE,
    role_name text   NOT NULL,
    PRIMARY KEY (user_id, role_name)
);
CREATE INDEX role_users_by_role ON role_users (role_name);

-- The users of the role that logged in (SET ROLE changes nothing). The setting jarvis.user_id,
-- SET LOCAL in a transaction, only chooses among them. It reads a table that the caller cannot,
-- so every name in it is fixed: pg_temp comes last, or the caller's own "role_users" would count.
DO $do$
BEGIN
    EXECUTE format($sql$
        CREATE FUNCTION %1$I.allowed_users() RETURNS SETOF bigint
        LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, %1$I, pg_temp AS $fn$
            SELECT r.user_id FROM %1$I.role_users AS r
            WHERE r.role_name = session_user
              AND coalesce(current_setting('jarvis.user_id', true), '') IN ('', r.user_id::text)
        $fn$ $sql$, current_schema());
END $do$;

-- Puts every table of people's rows (users, and what refers to it) under the policies, and gives
-- the roles that are known their rights on it. Run again after each migration.
CREATE FUNCTION protect_tables() RETURNS void LANGUAGE plpgsql AS $fn$
DECLARE
    everyone text;
    known    text;
    target   record;
BEGIN
    SELECT string_agg(quote_ident(name), ', ') INTO everyone FROM (
        SELECT current_user::text AS name
        UNION
        SELECT r.rolname::text FROM pg_policy p
        CROSS JOIN unnest(p.polroles) AS member (oid) JOIN pg_roles r ON r.oid = member.oid
        WHERE p.polrelid = 'users'::regclass AND p.polname = 'everyone'
    ) AS roles;
    SELECT string_agg(quote_ident(name), ', ') INTO known FROM (
        SELECT role_name AS name FROM role_users
        UNION
        SELECT r.rolname::text FROM pg_policy p
        CROSS JOIN unnest(p.polroles) AS member (oid) JOIN pg_roles r ON r.oid = member.oid
        WHERE p.polrelid = 'users'::regclass AND p.polname = 'everyone'
    ) AS roles WHERE name <> current_user AND EXISTS (SELECT FROM pg_roles WHERE rolname = name);

    FOR target IN
        WITH RECURSIVE ours (id) AS (
            SELECT 'users'::regclass::oid
            UNION
            SELECT k.conrelid FROM pg_constraint k JOIN ours ON k.confrelid = ours.id
            WHERE k.contype = 'f'
        )
        SELECT id::regclass AS name, id AS oid FROM ours
        WHERE EXISTS (SELECT FROM pg_attribute WHERE attrelid = id AND attname = 'user_id')
    LOOP
        EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', target.name);
        EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', target.name);
        IF EXISTS (SELECT FROM pg_policy WHERE polrelid = target.oid AND polname = 'everyone') THEN
            EXECUTE format('ALTER POLICY everyone ON %s TO %s', target.name, everyone);
        ELSE
            EXECUTE format('CREATE POLICY everyone ON %s TO %s USING (true) WITH CHECK (true)',
                           target.name, everyone);
            EXECUTE format('CREATE POLICY own ON %s USING (user_id IN (SELECT allowed_users()))'
                           ' WITH CHECK (user_id IN (SELECT allowed_users()))', target.name);
        END IF;
        IF known IS NOT NULL AND target.name <> 'role_users'::regclass THEN
            EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO %s', target.name, known);
        END IF;
    END LOOP;

    -- Shared by all: anybody may read and add, nobody but "everyone" may change another's.
    EXECUTE 'ALTER TABLE embedding_models ENABLE ROW LEVEL SECURITY';
    EXECUTE 'ALTER TABLE embedding_models FORCE ROW LEVEL SECURITY';
    IF EXISTS (SELECT FROM pg_policy
               WHERE polrelid = 'embedding_models'::regclass AND polname = 'everyone') THEN
        EXECUTE format('ALTER POLICY everyone ON embedding_models TO %s', everyone);
    ELSE
        EXECUTE format('CREATE POLICY everyone ON embedding_models TO %s'
                       ' USING (true) WITH CHECK (true)', everyone);
        EXECUTE 'CREATE POLICY readable ON embedding_models FOR SELECT USING (true)';
        EXECUTE 'CREATE POLICY addable ON embedding_models FOR INSERT WITH CHECK (true)';
    END IF;
    IF known IS NOT NULL THEN
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO %s', current_schema(), known);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON embedding_models TO %s', known);
        EXECUTE format('GRANT USAGE ON ALL SEQUENCES IN SCHEMA %I TO %s', current_schema(), known);
        EXECUTE format('GRANT SELECT ON schema_migrations TO %s', known);
    END IF;
END $fn$;

-- Lets a database role at the rows of one user; without a name, at everybody's.
CREATE FUNCTION allow_role(p_role text, p_user text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql AS $fn$
DECLARE
    found_user bigint;
BEGIN
    IF p_user IS NULL THEN
        EXECUTE format('ALTER POLICY everyone ON users TO %s', (
            SELECT string_agg(quote_ident(name), ', ') FROM (
                SELECT p_role AS name
                UNION
                SELECT r.rolname::text FROM pg_policy p
                CROSS JOIN unnest(p.polroles) AS member (oid) JOIN pg_roles r ON r.oid = member.oid
                WHERE p.polrelid = 'users'::regclass AND p.polname = 'everyone'
            ) AS roles));
    ELSE
        SELECT user_id INTO found_user FROM users WHERE name = p_user;
        IF found_user IS NULL THEN
            RAISE EXCEPTION 'there is no user %', p_user USING ERRCODE = 'no_data_found';
        END IF;
        INSERT INTO role_users (user_id, role_name) VALUES (found_user, p_role)
        ON CONFLICT DO NOTHING;
    END IF;
    PERFORM protect_tables();
END $fn$;

-- Takes it all back.
CREATE FUNCTION deny_role(p_role text) RETURNS void LANGUAGE plpgsql AS $fn$
DECLARE
    target record;
BEGIN
    DELETE FROM role_users WHERE role_name = p_role;
    FOR target IN
        SELECT c.oid::regclass AS name FROM pg_class c
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
          AND c.relname IN (SELECT p.polrelid::regclass::text FROM pg_policy p
                            WHERE p.polname = 'everyone'
                            UNION SELECT 'schema_migrations')
    LOOP
        EXECUTE format('REVOKE ALL ON %s FROM %I', target.name, p_role);
        IF target.name <> 'schema_migrations'::regclass THEN
            EXECUTE format('ALTER POLICY everyone ON %s TO %s', target.name, (
                SELECT string_agg(quote_ident(name), ', ') FROM (
                    SELECT current_user::text AS name
                    UNION
                    SELECT r.rolname::text FROM pg_policy p
                    CROSS JOIN unnest(p.polroles) AS member (oid)
                    JOIN pg_roles r ON r.oid = member.oid
                    WHERE p.polrelid = target.name AND p.polname = 'everyone'
                      AND r.rolname <> p_role
                ) AS roles));
        END IF;
    END LOOP;
END $fn$;

SELECT protect_tables();
