import type pg from 'pg'
import { HomeportError } from '../../contract/errors/errors.js'
import { damageIn, isDamage, type StoreDamage } from '../damage.js'
import { postgresDialect } from '../dialect.js'
import type { AnyOperation, Statement, Transaction } from '../operation.js'
import { bind, valuesOf } from '../query.js'
import type { Tables } from '../schema/index.js'
import { isUncertain, reasonOf } from './connection.js'

/** PostgreSQL's protocol counts parameters in 16 bits. */
const MAX_PARAMETERS = 65_535

/** Row locks decide conflicts: a write must see what others committed while it waited, whatever the server's default is. */
const BEGIN = {
  write: 'BEGIN ISOLATION LEVEL READ COMMITTED',
  read: 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY',
} as const

/**
 * Runs an operation as one transaction on a connection. Only statements whose result the body needs cost a round trip:
 * BEGIN, inserts and COMMIT are sent without waiting, so an operation that only inserts takes one round trip.
 *
 * If it rejects, nothing has changed, unless the error is `store_outcome_unknown`: then the connection broke after COMMIT
 * was sent.
 */
export async function runTransaction(
  client: pg.ClientBase,
  operation: AnyOperation,
  args: unknown,
  onDamage: (damage: StoreDamage) => void,
): Promise<unknown> {
  const pipeline = new Pipeline(client, onDamage)
  try {
    pipeline.send({ text: BEGIN[operation.access] })
    const result = await drive(pipeline, operation.body(args as never))
    await pipeline.allAnswered()
    return result
  } catch (thrown) {
    const error = (await pipeline.firstFailure()) ?? thrown
    if (!pipeline.isCommitSent) await client.query('ROLLBACK')
    else if (operation.access === 'write' && isUncertain(error)) throw outcomeUnknown(error)
    throw pipeline.damage ?? error
  }
}

function outcomeUnknown(error: unknown): HomeportError {
  return new HomeportError('store_outcome_unknown', {}, { cause: new Error(reasonOf(error)) })
}

/** Pipelined statements on a connection; replies come in the order of sending. */
class Pipeline {
  readonly #client: pg.ClientBase
  readonly onDamage: (damage: StoreDamage) => void
  readonly #sent: Promise<pg.QueryResult>[] = []
  isCommitSent = false
  /** The error of the first statement that found damaged data. */
  damage: HomeportError | undefined

  constructor(client: pg.ClientBase, onDamage: (damage: StoreDamage) => void) {
    this.#client = client
    this.onDamage = onDamage
  }

  /** Sends a statement. If nobody awaits the result, `allAnswered` reports a failure. */
  send(statement: pg.QueryConfig): Promise<pg.QueryResult> {
    const answer = this.#client.query(statement)
    answer.catch((error: unknown) => {
      if (isDamage(error)) this.damage ??= damageIn(statement.text, error)
    })
    this.#sent.push(answer)
    return answer
  }

  /** Sends COMMIT. PostgreSQL rolls back instead if an earlier statement has failed. */
  commit(): void {
    this.send({ text: 'COMMIT' })
    this.isCommitSent = true
  }

  async allAnswered(): Promise<void> {
    await Promise.all(this.#sent)
  }

  /** The error of the first failed statement; later ones only report that the transaction is aborted. */
  async firstFailure(): Promise<unknown> {
    const answers = await Promise.allSettled(this.#sent)
    return answers.find((answer) => answer.status === 'rejected')?.reason
  }
}

async function drive(pipeline: Pipeline, transaction: Transaction<unknown>): Promise<unknown> {
  let step = transaction.next()
  while (!step.done) step = transaction.next(await execute(pipeline, step.value))
  pipeline.commit()
  return step.value
}

function execute(pipeline: Pipeline, statement: Statement): unknown {
  if (statement.kind === 'damage') return pipeline.onDamage(statement.damage)
  if (statement.kind === 'insert') return void insert(pipeline, statement.table, statement.rows)
  if (statement.kind === 'number') return insertNumbered(pipeline, statement.table, statement.rows, statement.key)
  const { name, sql: text, slots } = statement.query.compile(postgresDialect)
  const answer = pipeline.send({ name, text, values: bind({ name, sql: text, slots }, statement.params) })
  return answer.then(({ rows, rowCount }) => (statement.kind === 'all' ? rows : (rowCount ?? 0)))
}

/** Inserts many rows per statement. Only the statement for a single row is prepared, because only that one recurs. */
function insert(
  pipeline: Pipeline,
  table: keyof Tables,
  rows: readonly object[],
  ending = '',
): Promise<pg.QueryResult>[] {
  const columns = Object.keys(rows[0] ?? {})
  const perStatement = Math.floor(MAX_PARAMETERS / columns.length)
  const answers: Promise<pg.QueryResult>[] = []
  for (let start = 0; start < rows.length; start += perStatement) {
    const batch = rows.slice(start, start + perStatement)
    const text = `INSERT INTO ${table} (${columns.join(', ')}) VALUES ${tuples(batch.length, columns.length)}${ending}`
    const values = valuesOf(batch).flat()
    answers.push(pipeline.send(batch.length === 1 ? { name: nameOf(text), text, values } : { text, values }))
  }
  return answers
}

/** PostgreSQL does not guarantee the order of RETURNING, so each number is returned with the key of its row. */
async function insertNumbered(
  pipeline: Pipeline,
  table: keyof Tables,
  rows: readonly object[],
  key: string,
): Promise<number[]> {
  const answers = await Promise.all(insert(pipeline, table, rows, ` RETURNING seq, ${key} AS key`))
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
