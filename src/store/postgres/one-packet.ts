import pg from 'pg'

/** Several results in the order of their statements. */
type Answered = (error: Error | null, results: pg.QueryResult | readonly pg.QueryResult[]) => void

/**
 * Named statements in one packet with a single Sync at its end: PostgreSQL runs them as one transaction without BEGIN and
 * COMMIT, and answers all of them in one packet. The driver sends a Sync with each statement, which would commit it.
 */
class OnePacket extends pg.Query {
  /** Called by the driver when all statements have been answered. */
  readonly callback: Answered

  constructor(statements: readonly pg.QueryConfig[], callback: Answered) {
    super('')
    this.callback = callback
    this.submit = (connection) => {
      const withoutSync: pg.Connection = Object.create(connection, { sync: { value: () => undefined } })
      connection.stream.cork()
      try {
        // The constructor would copy each statement.
        for (const statement of statements) Object.assign(new pg.Query(''), statement).submit(withoutSync)
        connection.sync()
      } finally {
        connection.stream.uncork()
      }
    }
  }
}

/**
 * Runs named statements as one transaction. Each must have run on this connection before: if one cannot be prepared, the
 * driver does not notice which of the others were.
 */
export function inOnePacket(
  client: pg.ClientBase,
  statements: readonly pg.QueryConfig[],
): Promise<readonly pg.QueryResult[]> {
  return new Promise((resolve, reject) => {
    const answered: Answered = (error, results) => {
      if (error) reject(error)
      else resolve('rows' in results ? [results] : results)
    }
    client.query(new OnePacket(statements, answered))
  })
}

/** Names of the statements that a connection has prepared. */
const prepared = new WeakMap<pg.ClientBase, Set<string>>()

/** Notes the statements that a connection has run. */
export function notePrepared(client: pg.ClientBase, statements: readonly pg.QueryConfig[]): void {
  const names = prepared.get(client) ?? new Set()
  prepared.set(client, names)
  for (const { name } of statements) if (name !== undefined) names.add(name)
}

/** Whether a connection has prepared all of these statements. */
export function arePrepared(client: pg.ClientBase, statements: readonly pg.QueryConfig[]): boolean {
  const names = prepared.get(client)
  return names !== undefined && statements.every(({ name }) => name !== undefined && names.has(name))
}
