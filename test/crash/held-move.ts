import type pg from 'pg'
import type { DatabaseMove } from '../../src/contract/server/moves.js'
import { waitFor } from '../support/index.js'
import { connectToPostgres } from './queue-ledger-store.js'

/** The number of an advisory lock that nothing else takes. */
const LOCK = 4_711

const SETUP = `
  CREATE TABLE held_states (state text NOT NULL);
  CREATE FUNCTION hold_state() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF EXISTS (SELECT 1 FROM held_states WHERE state = NEW.state) THEN
      PERFORM pg_advisory_xact_lock(${LOCK});
    END IF;
    RETURN NEW;
  END $$;
  CREATE TRIGGER hold_state BEFORE UPDATE OF state ON database_moves FOR EACH ROW EXECUTE FUNCTION hold_state()`

/** Holds transactions that store a state of a move, by a trigger in PostgreSQL. */
export class HeldMove {
  readonly #client: pg.Client

  private constructor(client: pg.Client) {
    this.#client = client
  }

  static async on(storeUrl: string): Promise<HeldMove> {
    const client = await connectToPostgres(storeUrl)
    await client.query(SETUP)
    return new HeldMove(client)
  }

  /** From now on, transactions that store this state wait. */
  async hold(state: DatabaseMove['state']): Promise<void> {
    await this.#client.query('SELECT pg_advisory_lock($1)', [LOCK])
    await this.#client.query('INSERT INTO held_states VALUES ($1)', [state])
  }

  /** Resolves when a transaction waits. */
  async reached(): Promise<void> {
    const waits = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = $1 AND NOT granted"
    const isReached = async () => ((await this.#client.query(waits, [LOCK])).rowCount ?? 0) > 0
    await waitFor(isReached, { what: 'the transaction', everyMs: 2 })
  }

  /** Lets all waiting transactions continue. May be repeated. */
  async release(): Promise<void> {
    await this.#client.query('DELETE FROM held_states')
    await this.#client.query('SELECT pg_advisory_unlock_all()')
  }

  async homeOf(databaseId: string): Promise<string> {
    const text = 'SELECT home FROM databases WHERE database_id = $1'
    return (await this.#client.query<{ home: string }>(text, [databaseId])).rows[0]?.home ?? ''
  }

  /** The state of the newest move of a database. */
  async stateOf(databaseId: string): Promise<string | undefined> {
    const text = 'SELECT state FROM database_moves WHERE database_id = $1 ORDER BY asked_at DESC, move_id DESC LIMIT 1'
    return (await this.#client.query<{ state: string }>(text, [databaseId])).rows[0]?.state
  }

  end(): Promise<void> {
    return this.#client.end()
  }
}
