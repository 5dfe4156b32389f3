import { HomeportError } from '../../contract/errors/errors.js'
import { postgresDialect } from '../dialect.js'
import type { AnyOperation } from '../operation.js'
import { bind } from '../query.js'
import type { Statement, Transaction } from '../statement.js'
import { isUncertain, reasonOf, wasNeverSent } from './errors.js'
import { Pipeline, type Session } from './pipeline.js'
import { insertNumbered, insertRows, updateEach } from './row-statements.js'

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

async function drive(pipeline: Pipeline, operation: AnyOperation, args: unknown, isSingle: boolean): Promise<unknown> {
  const transaction: Transaction<unknown> = operation.body(args as never)
  let statements = 0
  let step = transaction.next()
  while (!step.done) {
    if (step.value.kind !== 'damage') statements++
    if (!isSingle && !(statements === 1 && isWhole(step.value, operation))) pipeline.begin()
    // Such a statement would be committed separately.
    if (statements > 1 && !pipeline.isOpen) throw new Error(`${operation.name} has a statement after its last one`)
    step = transaction.next(await execute(pipeline, step.value))
  }
  pipeline.commit()
  return step.value
}

/** Whether these are all statements of the operation, so that its transaction needs no BEGIN. */
const isWhole = (statement: Statement, { access }: AnyOperation): boolean =>
  access === 'write' && statement.kind === 'several' && statement.isLast

function execute(pipeline: Pipeline, statement: Statement): unknown {
  switch (statement.kind) {
    case 'damage':
      return pipeline.onDamage(statement.damage)
    case 'insert':
      return insertRows(pipeline, statement.table, statement.rows)
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
 * Sends all statements, then waits for the answers. If a statement cannot be sent, for example because the store refuses a
 * text, it throws before COMMIT is sent.
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

/** Reads the row types that are not known yet, so that the statements can then be sent without waiting. */
async function rowTypesOf(pipeline: Pipeline, statements: readonly Statement[]): Promise<void> {
  for (;;) {
    const types = statements.flatMap((each) => ('table' in each ? [pipeline.rowType(each.table)] : []))
    const missing = types.filter((type) => type instanceof Promise)
    if (missing.length === 0) return
    await Promise.all(missing)
  }
}
