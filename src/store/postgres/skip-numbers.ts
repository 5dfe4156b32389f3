import type pg from 'pg'

/** Key of the advisory lock that a connection holds while it skips numbers; an arbitrary constant. */
const SKIP_LOCK = 7_210_003
/** More numbers than a server can have assigned in lost commits: replication may have lagged by minutes. */
const SKIPPED = 2 ** 24
/** Skipped numbers of lives of nodes: fewer, because they are also keys of advisory locks, which have only 31 bits. */
const SKIPPED_LIVES = 1_000

/** Which server assigned the last numbers, by its start time, microseconds. It is in a row of `leases` that nobody owns. */
const SERVER = `SELECT (extract(epoch from pg_postmaster_start_time()) * 1000000)::bigint AS here,
  (SELECT epoch FROM leases WHERE name = 'server') AS known,
  has_sequence_privilege(pg_get_serial_sequence('messages', 'seq'), 'UPDATE') AS may`
const LOCK = `SELECT pg_advisory_xact_lock(${SKIP_LOCK})`
/** The tables that number their rows. */
export const NUMBERED = [
  ...['alerts', 'audit_log', 'bulk_actions', 'cancelled_deliveries', 'messages', 'nodes', 'notified_events'],
  ...['run_events', 'run_remains', 'run_returns', 'run_waits', 'runs'],
] as const
const SKIP = `SELECT setval(sequence.oid::regclass,
    nextval(sequence.oid::regclass) + CASE owner.relname WHEN 'nodes' THEN ${SKIPPED_LIVES} ELSE ${SKIPPED} END)
  FROM pg_class sequence
  JOIN pg_depend link ON link.classid = 'pg_class'::regclass AND link.objid = sequence.oid AND link.deptype = 'i'
  JOIN pg_class owner ON owner.oid = link.refobjid
  WHERE sequence.relkind = 'S' AND owner.oid IN (SELECT to_regclass(name) FROM unnest($1::text[]) AS ours (name))`
const SKIP_ANNOUNCEMENTS = `UPDATE leases SET epoch = epoch + ${SKIPPED} WHERE name = 'announcements'`
const REMEMBER = `INSERT INTO leases (name, owner, epoch) VALUES ('server', NULL, $1)
  ON CONFLICT (name) DO UPDATE SET epoch = excluded.epoch`

interface Servers {
  readonly here: number
  readonly known: number | null
  /** Whether this user may skip numbers. A user that does not own the tables may not; then other nodes do it. */
  readonly may: number
}

/**
 * Skips row numbers after another server has taken over, which may lack the last commits of the previous one. Nodes may
 * still have rows of the lost commits in memory. If new rows got the same numbers, nodes would confuse them: a lost message
 * would end another one. Call it before a connection is used, so that no row gets such a number. A store that has had no
 * server yet has no numbers to skip.
 */
export async function skipNumbers(client: pg.ClientBase): Promise<void> {
  const { here, known, may } = await serversOf(client)
  if (here === known || may === 0) return
  await client.query('BEGIN')
  await client.query(LOCK)
  // Another connection may have skipped them meanwhile.
  const found = await serversOf(client)
  if (found.known !== null && found.known !== here) {
    await client.query(SKIP, [NUMBERED])
    await client.query(SKIP_ANNOUNCEMENTS)
  }
  if (found.known !== here) await client.query(REMEMBER, [here])
  await client.query('COMMIT')
}

async function serversOf(client: pg.ClientBase): Promise<Servers> {
  const { rows } = await client.query<Servers>(SERVER)
  const [found] = rows
  if (!found) throw new Error('the server did not say when it was started')
  return found
}
