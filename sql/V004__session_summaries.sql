-- The last message that the SUMMARY memory of a closed conversation covers: a conversation that
-- goes on after it was closed is summarised anew, one whose summary was forgotten is not.
ALTER TABLE sessions ADD COLUMN closed_message_id bigint NOT NULL DEFAULT 0;
