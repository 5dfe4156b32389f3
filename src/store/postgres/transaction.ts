import type pg from 'pg'
import { HomeportError } from '../../contract/errors/errors.js'
import { damageIn, isDamage, type StoreDamage } from '../damage.js'
import { postgresDialect } from '../dialect.js'
import type { AnyOperation, Statement, Transaction } from '../operation.js'
import { bind } from '../query.js'
import type { Tables } from '../schema/index.js'
import { BYTEA, INT8, TEXT } from './binary-array.js'
import { type Answer, runStatement } from './described.js'
import { isUncertain, reasonOf, wasNeverSent } from './errors.js'
import { arePrepared, inOnePacket, notePrepared } from './one-packet.js'
import { type EncodedRows, encodeRows, encodeShared, type RowType, type RowTypes } from './rows.js'

/** Row locks decide conflicts: a write must see what others committed while it waited, whatever the server's default is. */
const BEGIN = {
  write: 'BEGIN ISOLATION LEVEL READ COMMITTED',
  read: 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY',
} as const

/** What a transaction runs on. */
export interface Session {
  readonly client: pg.ClientBase
  readonly rowTypes: RowTypes
  readonly onDamage: (damage: StoreDamage) => void
}

/**
 * Runs an operation as one transaction on a connection. Only statements whose result the body needs cost a round trip:
 * BEGIN, inserts and COMMIT are sent without waiting, so an operation that only inserts takes one round trip. One that
 * yields a single statement, or all of its statements at once, needs no BEGIN and COMMIT.
 *
 * If it rejects, nothing has changed, unless the error is `store_outcome_unknown`: then the connection broke after COMMIT
 * was sent, or after the single statement was.
 */
export async function runTransaction(session: Session, operation: AnyOperation, args: unknown): Promise<unknown> {
  const pipeline = new Pipeline(session, operation.access)
  const isSingle = operation.isSingle?.(args as never) ?? false
  try {
    const result = await drive(pipeline, operation, args, isSingle)
    const answers = pipeline.unanswered()
    if (answers) await answers
    return result
  } catch (thrown) {
    const error = (await pipeline.firstFailure()) ?? thrown
    if (pipeline.isOpen) await session.client.query('ROLLBACK')
    else if (operation.access === 'write' && isUncertain(error) && !wasNeverSent(error)) throw outcomeUnknown(error)
    throw pipeline.damage ?? error
  }
}

function outcomeUnknown(error: unknown): HomeportError {
  return new HomeportError('store_outcome_unknown', {}, { cause: new Error(reasonOf(error)) })
}

/** A statement that is not sent yet, and its caller. */
interface Held {
  readonly statement: pg.QueryConfig
  readonly resolve: (result: Answer) => void
  readonly reject: (error: unknown) => void
}

function hold(held: Held[], statement: pg.QueryConfig): Promise<Answer> {
  const answer = new Promise<Answer>((resolve, reject) => held.push({ statement, resolve, reject }))
  // If nobody waits for it: `unanswered` reports the failure.
  answer.catch(() => undefined)
  return answer
}

/** Pipelined statements on a connection; replies come in the order of sending. */
class Pipeline {
  readonly #client: pg.ClientBase
  readonly #access: AnyOperation['access']
  readonly #rowTypes: RowTypes
  readonly onDamage: (damage: StoreDamage) => void
  readonly #sent: Promise<unknown>[] = []
  #answered = 0
  /** Statements that are sent together, while they are gathered. */
  #held: Held[] | undefined
  #state: 'no transaction' | 'begun' | 'commit sent' = 'no transaction'
  /** The error of the first statement that found damaged data. */
  damage: HomeportError | undefined

  constructor({ client, rowTypes, onDamage }: Session, access: AnyOperation['access']) {
    this.#client = client
    this.#access = access
    this.#rowTypes = rowTypes
    this.onDamage = onDamage
  }

  /** Whether a transaction has begun and COMMIT was not sent. */
  get isOpen(): boolean {
    return this.#state === 'begun'
  }

  /** Sends a statement. If nobody awaits the result, `unanswered` reports a failure. */
  send(statement: pg.QueryConfig): Promise<Answer> {
    if (this.#held) return hold(this.#held, statement)
    const answer = runStatement(this.#client, statement)
    this.#note(answer, [statement])
    return answer
  }

  #note(answer: Promise<unknown>, statements: readonly pg.QueryConfig[]): void {
    this.#sent.push(answer)
    answer.then(
      () => {
        this.#answered++
        notePrepared(this.#client, statements)
      },
      (error: unknown) => {
        if (isDamage(error)) this.damage ??= damageIn(statements.map(({ text }) => text).join(' '), error)
      },
    )
  }

  /** Sends the statements of `work` as a whole transaction, in one packet if all of them are prepared. */
  asWhole(work: () => void): void {
    const held: Held[] = []
    this.#held = held
    try {
      work()
    } finally {
      this.#held = undefined
    }
    const statements = held.map(({ statement }) => statement)
    if (arePrepared(this.#client, statements)) this.#sendInOnePacket(held, statements)
    else this.#sendEach(held)
  }

  #sendInOnePacket(held: readonly Held[], statements: readonly pg.QueryConfig[]): void {
    this.#state = 'commit sent'
    const answer = inOnePacket(this.#client, statements)
    this.#note(answer, statements)
    answer.then(
      (results) => {
        for (const [index, result] of results.entries()) held[index]?.resolve(result)
      },
      (error: unknown) => {
        for (const { reject } of held) reject(error)
      },
    )
  }

  #sendEach(held: readonly Held[]): void {
    this.begin()
    for (const { statement, resolve, reject } of held) this.send(statement).then(resolve, reject)
    this.commit()
  }

  /** The row type of a table, at once if it is known. */
  rowType(table: string): RowType | Promise<RowType> {
    return this.#rowTypes.of(table, (statement) => this.send(statement))
  }

  /** Sends BEGIN, unless it was sent. */
  begin(): void {
    if (this.#state !== 'no transaction') return
    this.#state = 'begun'
    this.send({ text: BEGIN[this.#access] })
  }

  /** Sends COMMIT if a transaction has begun. PostgreSQL rolls back instead if an earlier statement has failed. */
  commit(): void {
    if (!this.isOpen) return
    this.#state = 'commit sent'
    this.send({ text: 'COMMIT' })
  }

  /** All answers, unless each statement has succeeded already. */
  unanswered(): Promise<unknown> | undefined {
    return this.#answered === this.#sent.length ? undefined : Promise.all(this.#sent)
  }

  /** The error of the first failed statement; later ones only report that the transaction is aborted. */
  async firstFailure(): Promise<unknown> {
    const answers = await Promise.allSettled(this.#sent)
    return answers.find((answer) => answer.status === 'rejected')?.reason
  }
}

async function drive(pipeline: Pipeline, operation: AnyOperation, args: unknown, isSingle: boolean): Promise<unknown> {
  const transaction: Transaction<unknown> = operation.body(args as never)
  let statements = 0
  let step = transaction.next()
  while (!step.done) {
    if (step.value.kind !== 'damage') statements++
    if (!isSingle && !(statements === 1 && isWhole(step.value, operation))) pipeline.begin()
    // It would be committed apart from those before.
    if (statements > 1 && !pipeline.isOpen) throw new Error(`${operation.name} has a statement after its last one`)
    step = transaction.next(await execute(pipeline, step.value))
  }
  pipeline.commit()
  return step.value
}

/** Whether these are all statements of the operation: its transaction needs no BEGIN. */
const isWhole = (statement: Statement, { access }: AnyOperation): boolean =>
  access === 'write' && statement.kind === 'several' && statement.isLast

function execute(pipeline: Pipeline, statement: Statement): unknown {
  switch (statement.kind) {
    case 'damage':
      return pipeline.onDamage(statement.damage)
    case 'insert':
      return writeRows(pipeline, statement.table, statement.rows, insertInto(statement.table))
    case 'number':
      return insertNumbered(pipeline, statement)
    case 'update':
      return updateEach(pipeline, statement)
    case 'several':
      return executeSeveral(pipeline, statement)
    case 'all':
    case 'change': {
      const { name, sql: text, slots } = statement.query.compile(postgresDialect)
      const answer = pipeline.send({ name, text, values: bind({ name, sql: text, slots }, statement.params) })
      return answer.then(({ rows, rowCount }) => (statement.kind === 'all' ? rows : (rowCount ?? 0)))
    }
  }
}

/**
 * Sends all of them, then waits for the answers. If one cannot be sent, such as for a text that the store refuses, it
 * throws before COMMIT is sent.
 */
async function executeSeveral(
  pipeline: Pipeline,
  { statements, isLast }: Statement & { kind: 'several' },
): Promise<unknown[]> {
  await rowTypesOf(pipeline, statements)
  const answers: Promise<unknown>[] = []
  const sendAll = (): void => {
    for (const statement of statements) {
      const answer = Promise.resolve(execute(pipeline, statement))
      // If a later one cannot be sent, nobody waits for this answer.
      answer.catch(() => undefined)
      answers.push(answer)
    }
  }
  if (isLast && !pipeline.isOpen) pipeline.asWhole(sendAll)
  else sendAll()
  if (isLast) pipeline.commit()
  return await Promise.all(answers)
}

/** Reads the row types that are not known; once all are, statements are sent without waiting. */
async function rowTypesOf(pipeline: Pipeline, statements: readonly Statement[]): Promise<void> {
  for (;;) {
    const types = statements.flatMap((each) => ('table' in each ? [pipeline.rowType(each.table)] : []))
    const missing = types.filter((type) => type instanceof Promise)
    if (missing.length === 0) return
    await Promise.all(missing)
  }
}

/** The text of a statement over rows, from their columns and from what has them. */
type TextOf = (columns: readonly string[], source: RowSource) => string

/** What a statement reads rows from. */
interface RowSource {
  /** The value of a column. */
  readonly of: (column: string) => string
  readonly from: string
}

/** Rows that are the only parameter. */
const oneParameter = (table: keyof Tables): RowSource => ({
  of: (column) => column,
  from: `unnest($1::${table}[])`,
})

const ARRAY_OF = { [INT8]: 'bigint[]', [TEXT]: 'text[]', [BYTEA]: 'bytea[]' } as const

/** Rows of which many share most values; see `SharedRows`. Each run is read in turn, so rows keep their order. */
function sharedParameters(table: keyof Tables, { columns }: RowType, each: readonly string[]): RowSource {
  const types = each.map((name) => ARRAY_OF[columns.find((column) => column.name === name)?.type ?? TEXT])
  const values = types.map((type, index) => `unnest(($${index + 4}::${type})[r._first:r._last])`)
  const runs = `unnest($1::${table}[]), unnest($2::bigint[]), unnest($3::bigint[])`
  const names = [...columns.map(({ name }) => name), '_first', '_last'].join(', ')
  return {
    of: (column) => (each.includes(column) ? `e.${column}` : `r.${column}`),
    from: `ROWS FROM (${runs}) AS r(${names}), ROWS FROM (${values.join(', ')}) AS e(${each.join(', ')})`,
  }
}

const insertInto =
  (table: keyof Tables, ending = ''): TextOf =>
  (columns, { of, from }) =>
    `INSERT INTO ${table} (${columns.join(', ')}) SELECT ${columns.map(of).join(', ')} FROM ${from}${ending}`

/**
 * Sends statements over rows, one for all that fit into it, without waiting for their results. Only the first statement
 * over a table waits: for the row type.
 */
function writeRows(
  pipeline: Pipeline,
  table: keyof Tables,
  rows: readonly object[],
  textOf: TextOf,
  each?: readonly string[],
): Promise<Answer>[] | Promise<Promise<Answer>[]> {
  const sendAs = (type: RowType): Promise<Answer>[] => {
    const shared = each && encodeShared(type, rows, each)
    if (each && shared) return [sendWith(shared, sharedParameters(table, type, each), shared.parameters)]
    const encoded = encodeRows(type, rows)
    if (encoded.parameters.length > 1) pipeline.begin()
    return encoded.parameters.map((parameter) => sendWith(encoded, oneParameter(table), [parameter]))
  }
  const sendWith = ({ columns }: Pick<EncodedRows, 'columns'>, source: RowSource, values: readonly Buffer[]) => {
    const text = textOf(columns, source)
    return pipeline.send({ name: nameOf(text), text, values: [...values] })
  }
  const type = pipeline.rowType(table)
  return type instanceof Promise ? type.then(sendAs) : sendAs(type)
}

/** A row that a statement over rows returns. */
type Returned = Readonly<Record<'key' | 'seq' | 'new_seqs', unknown>>

async function rowsOf(answers: ReturnType<typeof writeRows>): Promise<readonly Returned[]> {
  return (await Promise.all(await answers)).flatMap((answer) => answer.rows)
}

/**
 * Inserts rows and answers the numbers that they got, in the order of the rows. Throws at once for rows that cannot be
 * sent: a COMMIT would follow.
 */
function insertNumbered(
  pipeline: Pipeline,
  { table, rows, key, unlessTaken, each }: Statement & { kind: 'number' },
): Promise<(number | undefined)[]> {
  return unlessTaken ? insertFree(pipeline, table, rows, key, unlessTaken) : insertEach(pipeline, table, rows, each)
}

/**
 * The rows are read, numbered and inserted in their order, so ascending numbers are in the order of the rows, whatever the
 * order in which PostgreSQL returns them. As one text they cost less than as thousands of rows.
 */
function insertEach(
  pipeline: Pipeline,
  table: keyof Tables,
  rows: readonly object[],
  each: readonly string[] | undefined,
): Promise<number[]> {
  const stored = insertInto(table, ' RETURNING seq')
  const textOf: TextOf = (columns, source) =>
    `WITH _stored AS (${stored(columns, source)}) SELECT array_agg(seq)::text AS new_seqs FROM _stored`
  return rowsOf(writeRows(pipeline, table, rows, textOf, each)).then((found) => {
    const numbers = found.flatMap((row) => numbersOf(String(row.new_seqs)))
    if (numbers.length !== rows.length) throw new Error(`${table} numbered ${numbers.length} of ${rows.length} rows`)
    return numbers.sort((a, b) => a - b)
  })
}

/** The numbers of an array as PostgreSQL writes it: `{1,2}`. */
const numbersOf = (array: string): number[] => JSON.parse(`[${array.slice(1, -1)}]`)

/** Inserts the rows that do not exist yet. Their numbers are found by the key, because some rows may be left out. */
function insertFree(
  pipeline: Pipeline,
  table: keyof Tables,
  rows: readonly object[],
  key: string,
  unlessTaken: readonly string[],
): Promise<(number | undefined)[]> {
  const textOf = insertInto(table, ` ON CONFLICT (${unlessTaken.join(', ')}) DO NOTHING RETURNING seq, ${key} AS key`)
  return rowsOf(writeRows(pipeline, table, rows, textOf)).then((found) => {
    const numbers = new Map(found.map((row) => [row.key, Number(row.seq)]))
    return rows.map((row) => numbers.get(Reflect.get(row, key)))
  })
}

function updateEach(
  pipeline: Pipeline,
  { table, rows, match, where }: Statement & { kind: 'update' },
): Promise<unknown[]> {
  const [key = ''] = match
  // Sorted by primary key, so that two such statements lock their common rows in the same order.
  const sorted = [...rows].sort((a, b) => Reflect.get(a, key) - Reflect.get(b, key))
  const textOf: TextOf = (columns, source) => {
    const sets = columns.filter((name) => !match.includes(name)).map((name) => `${name} = d.${name}`)
    const finds = match.map((name) => `t.${name} = d.${name}`)
    // As an expression, so that no partial index over these constants is used instead of the key.
    const constants = Object.entries(where).map(([name, text]) => `t.${name} || '' = '${text}'`)
    // PostgreSQL takes rows of unknown number for ten, so it would plan the statement for one row each time. Since the key is
    // compared with a value, the plan that it keeps looks it up: a join planned while the table was small would read all of it.
    if (rows.length === 1) constants.push(`t.${key} = (SELECT ${key} FROM ${source.from})`)
    const from = `(SELECT ${columns.join(', ')} FROM ${source.from}) AS d`
    return `UPDATE ${table} AS t SET ${sets.join(', ')} FROM ${from} WHERE ${[...finds, ...constants].join(' AND ')} RETURNING t.${key} AS key`
  }
  return rowsOf(writeRows(pipeline, table, sorted, textOf)).then((found) => found.map((row) => row.key))
}

const names = new Map<string, string>()

function nameOf(text: string): string {
  const name = names.get(text) ?? `i${names.size + 1}`
  names.set(text, name)
  return name
}
