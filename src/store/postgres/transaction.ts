import type pg from 'pg'
import { HomeportError } from '../../contract/errors/errors.js'
import { damageIn, isDamage, type StoreDamage } from '../damage.js'
import { postgresDialect } from '../dialect.js'
import type { AnyOperation, Statement, Transaction } from '../operation.js'
import { bind, valuesOf } from '../query.js'
import type { Tables } from '../schema/index.js'
import { isLoss, reasonOf } from './connection.js'

/** PostgreSQL's protocol counts parameters with 16 bits. */
const MOST_PARAMETERS = 65_535

const BEGIN = { write: 'BEGIN', read: 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY' } as const

/**
 * Runs an operation as one transaction on a connection. Only a statement whose result the body needs costs a round
 * trip: BEGIN, inserts and COMMIT are sent without waiting, so an operation that only inserts is one round trip.
 *
 * Rejects with nothing changed, or with `store_outcome_unknown` when the connection broke after COMMIT was sent.
 */
export async function runTransaction(
  client: pg.ClientBase,
  operation: AnyOperation,
  args: unknown,
  onDamage: (damage: StoreDamage) => void,
): Promise<unknown> {
  const pipe = new Pipe(client, onDamage)
  try {
    pipe.send({ text: BEGIN[operation.access] })
    const result = await drive(pipe, operation.body(args as never))
    await pipe.allAnswered()
    return result
  } catch (thrown) {
    const error = (await pipe.firstFailure()) ?? thrown
    if (!pipe.isCommitSent) await client.query('ROLLBACK')
    else if (operation.access === 'write' && isLoss(error)) throw outcomeUnknown(error)
    throw pipe.damage ?? error
  }
}

function outcomeUnknown(error: unknown): HomeportError {
  return new HomeportError('store_outcome_unknown', {}, { cause: new Error(reasonOf(error)) })
}

/** Statements on their way over one connection, answered in the order in which they were sent. */
class Pipe {
  readonly #client: pg.ClientBase
  readonly onDamage: (damage: StoreDamage) => void
  readonly #sent: Promise<pg.QueryResult>[] = []
  isCommitSent = false
  /** What the first statement said that met damaged data. */
  damage: HomeportError | undefined

  constructor(client: pg.ClientBase, onDamage: (damage: StoreDamage) => void) {
    this.#client = client
    this.onDamage = onDamage
  }

  /** Sends a statement. A failure is not lost when nobody waits for it: `allAnswered` meets it. */
  send(statement: pg.QueryConfig): Promise<pg.QueryResult> {
    const answer = this.#client.query(statement)
    answer.catch((error: unknown) => {
      if (isDamage(error)) this.damage ??= damageIn(statement.text, error)
    })
    this.#sent.push(answer)
    return answer
  }

  /** Sends COMMIT. PostgreSQL turns it into a rollback when a statement before it has failed. */
  commit(): void {
    this.send({ text: 'COMMIT' })
    this.isCommitSent = true
  }

  async allAnswered(): Promise<void> {
    await Promise.all(this.#sent)
  }

  /** The first statement that failed tells why; those behind it only say that the transaction is aborted. */
  async firstFailure(): Promise<unknown> {
    const answers = await Promise.allSettled(this.#sent)
    return answers.find((answer) => answer.status === 'rejected')?.reason
  }
}

async function drive(pipe: Pipe, transaction: Transaction<unknown>): Promise<unknown> {
  let step = transaction.next()
  while (!step.done) step = transaction.next(await execute(pipe, step.value))
  pipe.commit()
  return step.value
}

function execute(pipe: Pipe, statement: Statement): unknown {
  if (statement.kind === 'damage') return pipe.onDamage(statement.damage)
  if (statement.kind === 'insert') return void insert(pipe, statement.table, statement.rows)
  if (statement.kind === 'number') return insertNumbered(pipe, statement.table, statement.rows, statement.key)
  const { name, sql: text, slots } = statement.query.compile(postgresDialect)
  const answer = pipe.send({ name, text, values: bind({ name, sql: text, slots }, statement.params) })
  return answer.then(({ rows, rowCount }) => (statement.kind === 'all' ? rows : (rowCount ?? 0)))
}

/** Many rows go in one statement; PostgreSQL prepares only the shape that comes again and again, a single row. */
function insert(pipe: Pipe, table: keyof Tables, rows: readonly object[], ending = ''): Promise<pg.QueryResult>[] {
  const columns = Object.keys(rows[0] ?? {})
  const perStatement = Math.floor(MOST_PARAMETERS / columns.length)
  const answers: Promise<pg.QueryResult>[] = []
  for (let start = 0; start < rows.length; start += perStatement) {
    const some = rows.slice(start, start + perStatement)
    const text = `INSERT INTO ${table} (${columns.join(', ')}) VALUES ${tuples(some.length, columns.length)}${ending}`
    const values = valuesOf(some).flat()
    answers.push(pipe.send(some.length === 1 ? { name: nameOf(text), text, values } : { text, values }))
  }
  return answers
}

/** Nothing promises that numbers come back in the order of the rows, so each comes with the key of its row. */
async function insertNumbered(
  pipe: Pipe,
  table: keyof Tables,
  rows: readonly object[],
  key: string,
): Promise<number[]> {
  const answers = await Promise.all(insert(pipe, table, rows, ` RETURNING seq, ${key} AS key`))
  const numbers = new Map(answers.flatMap((answer) => answer.rows).map((row) => [row.key, row.seq]))
  return rows.map((row) => numbers.get(Reflect.get(row, key)))
}

function tuples(rows: number, columns: number): string {
  const tuple = (row: number): string =>
    `(${Array.from({ length: columns }, (_, column) => `$${row * columns + column + 1}`).join(', ')})`
  return Array.from({ length: rows }, (_, row) => tuple(row)).join(', ')
}

const names = new Map<string, string>()

function nameOf(text: string): string {
  const name = names.get(text) ?? `i${names.size + 1}`
  names.set(text, name)
  return name
}
