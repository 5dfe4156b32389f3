import pg from 'pg'
import { parserOf } from './connection.js'

/** The members of an answer to a statement that transactions read. */
export type Answer = Pick<pg.QueryResult, 'rows' | 'rowCount'>

/** A column of the rows of a statement. */
interface Column {
  readonly name: string
  readonly parse: (text: string) => unknown
}

/** The columns of named statements by connection. PostgreSQL refuses to run a prepared statement whose columns have changed. */
const described = new WeakMap<pg.ClientBase, Map<string, readonly Column[]>>()

/** Sends a statement. The driver would ask for a description each time; for a named statement, this asks only once. */
export function runStatement(client: pg.ClientBase, statement: pg.QueryConfig): Promise<Answer> {
  const { name } = statement
  if (name === undefined) return client.query(statement)
  const columns = described.get(client)?.get(name)
  if (columns) return runDescribed(client, statement, columns)
  return client.query(statement).then((result) => {
    noteColumns(client, name, result.fields)
    return result
  })
}

function noteColumns(client: pg.ClientBase, name: string, fields: readonly pg.FieldDef[]): void {
  const ofClient = described.get(client) ?? new Map<string, readonly Column[]>()
  described.set(client, ofClient)
  ofClient.set(
    name,
    fields.map((field) => ({ name: field.name, parse: parserOf(field.dataTypeID) })),
  )
}

function runDescribed(client: pg.ClientBase, statement: pg.QueryConfig, columns: readonly Column[]): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const query = new DescribedQuery(statement, columns, (error, { rowCount } = { rowCount: null }) => {
      if (error) reject(error)
      else resolve({ rows: query.found, rowCount })
    })
    client.query(query)
  })
}

type Answered = (error: Error | null, result?: Pick<pg.QueryResult, 'rowCount'>) => void

/** The values of a row, as PostgreSQL sends them. */
interface DataRow {
  readonly fields: readonly (string | null)[]
}

/** A query whose columns are known, so it reads the rows itself. */
class DescribedQuery extends pg.Query {
  readonly found: object[] = []
  /** The driver calls it when the statement has been answered. */
  readonly callback: Answered
  readonly #columns: readonly Column[]

  constructor({ name, text, values }: pg.QueryConfig, columns: readonly Column[], callback: Answered) {
    // The driver would copy an object, property by property with their descriptors.
    super('')
    this.#columns = columns
    this.callback = callback
    const submit = this.submit
    // The driver reads them when it sends the statement.
    Object.assign(this, { name, text, values })
    this.submit = (connection) => submit.call(this, withoutDescribe(connection))
  }

  /** The driver calls it for each row. */
  handleDataRow({ fields }: DataRow): void {
    const row: Record<string, unknown> = {}
    let index = 0
    for (const { name, parse } of this.#columns) {
      const text = fields[index++] ?? null
      row[name] = text === null ? null : parse(text)
    }
    this.found.push(row)
  }
}

const silent = new WeakMap<pg.Connection, pg.Connection>()

/** The same connection, but it sends no request for a description. */
function withoutDescribe(connection: pg.Connection): pg.Connection {
  const known = silent.get(connection)
  if (known) return known
  const made: pg.Connection = Object.create(connection, { describe: { value: () => undefined } })
  silent.set(connection, made)
  return made
}
