import type { Migration } from './migration.js'

/**
 * On PostgreSQL, a foreign key that cascades looks for the attempts of every deleted message. Only a message that was
 * retried has attempts, and its row says so: a trigger with that condition costs nothing for all other messages. A second
 * trigger refuses attempts without a message, as the key did.
 */
export const attemptsOfMessages: Migration = {
  number: 45,
  name: 'attempts of messages',
  breaking: false,
  statements: (t) => t.either({ sqlite: [], postgres: TRIGGER }),
}

const TRIGGER = [
  'ALTER TABLE message_attempts DROP CONSTRAINT message_attempts_message_seq_fkey',
  `CREATE FUNCTION message_attempts_remove() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    DELETE FROM message_attempts WHERE message_seq = OLD.seq;
    RETURN NULL;
  END $$`,
  `CREATE FUNCTION message_attempts_check() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    PERFORM FROM messages WHERE seq = NEW.message_seq FOR KEY SHARE;
    IF NOT FOUND THEN
      RAISE foreign_key_violation USING MESSAGE = 'message_attempts: no message ' || NEW.message_seq || ' for the foreign key';
    END IF;
    RETURN NULL;
  END $$`,
  `CREATE TRIGGER message_attempts_added AFTER INSERT ON message_attempts FOR EACH ROW
    EXECUTE FUNCTION message_attempts_check()`,
  `CREATE TRIGGER messages_deleted AFTER DELETE ON messages FOR EACH ROW WHEN (OLD.retried > 0)
    EXECUTE FUNCTION message_attempts_remove()`,
]
