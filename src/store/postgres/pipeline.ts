import type pg from 'pg'
import type { HomeportError } from '../../contract/errors/errors.js'
import { damageIn, isDamage, type StoreDamage } from '../damage.js'
import type { AnyOperation } from '../operation.js'
import { type Answer, runStatement } from './described.js'
import { arePrepared, inOnePacket, notePrepared } from './one-packet.js'
import type { RowType, RowTypes } from './rows.js'

/** Row locks decide conflicts: a write must see what others committed while it waited, whatever the server's default is. */
const BEGIN = {
  write: 'BEGIN ISOLATION LEVEL READ COMMITTED',
  read: 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY',
} as const

/** The connection of a transaction, with the row types of its database. */
export interface Session {
  readonly client: pg.ClientBase
  readonly rowTypes: RowTypes
  readonly onDamage: (damage: StoreDamage) => void
}

/** A statement that is not sent yet, and its caller. */
interface Held {
  readonly statement: pg.QueryConfig
  readonly resolve: (result: Answer) => void
  readonly reject: (error: unknown) => void
}

function hold(held: Held[], statement: pg.QueryConfig): Promise<Answer> {
  const answer = new Promise<Answer>((resolve, reject) => held.push({ statement, resolve, reject }))
  // Nobody may await this answer; `unanswered` reports its failure.
  answer.catch(() => undefined)
  return answer
}

/** The statements of one transaction, pipelined on a connection: replies come in the order of sending. */
export class Pipeline {
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
