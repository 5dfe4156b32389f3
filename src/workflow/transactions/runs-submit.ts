import { HomeportError } from '../../contract/errors/errors.js'
import { countDaily, type DailyQuota } from '../../queue/transactions/daily-messages.js'
import type { PendingRow } from '../../queue/transactions/messages.js'
import { all, change, first, only, type Transaction, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { RunContact, RunState } from '../../store/schema/runs.js'
import { type Appending, deliverElements, insertElements } from './runs-append.js'
import { callFor, invocationFor } from './runs-repeats.js'
import type { NewElement, NewRun, ParentLink } from './runs-rows.js'

/** One item of a request, for a run of the account. */
export type Submission =
  /** Starts a run, unless its id is taken. The `parent` must be active. */
  | { readonly kind: 'start'; readonly run: NewRun; readonly first: NewElement; readonly parent?: ParentLink }
  /**
   * An SDK confirms the first contact of a run. With an unknown id, this would start the run: `refuse` lets the caller
   * ask the gate first.
   */
  | {
      readonly kind: 'confirm'
      readonly run: NewRun
      readonly first: NewElement
      readonly ifUnknown: 'refuse' | 'start'
    }
  /**
   * Appends to the list of a run, which must be active. `mark` identifies a call that the program requests again
   * (`runs-repeats.ts`).
   */
  | { readonly kind: 'append'; readonly runId: string; readonly element: NewElement; readonly mark?: string }

type StartOfRun = Exclude<Submission, { kind: 'append' }>

/** All items of one request; stored all or none. */
export interface SubmitArgs {
  readonly accountId: string
  readonly submissions: readonly Submission[]
  /** Unix milliseconds. */
  readonly at: number
  /** Of an account with a limit of messages a day: a new run counts as one. */
  readonly quota?: DailyQuota | undefined
}

/** Outcome of one submission. */
export type Submitted =
  | { readonly kind: 'started' | 'confirmed'; readonly runId: string; readonly createdAt: number }
  /** The run existed already; `messageId` is that of its first element. */
  | { readonly kind: 'exists'; readonly runId: string; readonly createdAt: number; readonly messageId: string }
  | { readonly kind: 'appended' }
  /** A call or invocation that was requested before and is not repeated; `messageId` is that of the first one. */
  | { readonly kind: 'repeated'; readonly messageId: string }

/** The position of a new element in the list of its run. */
export interface ElementPlace {
  readonly messageId: string
  readonly runSeq: number
  readonly position: number
}

/**
 * Outcome of a request. `ended` and `missing` name a run that accepts nothing, or that a confirmation would start; then
 * nothing was changed.
 */
export type SubmitResult =
  | {
      readonly kind: 'accepted'
      readonly results: readonly Submitted[]
      readonly offers: readonly PendingRow[]
      /** Positions of all new elements, in the order of their submissions. */
      readonly places: readonly ElementPlace[]
    }
  | { readonly kind: 'ended'; readonly runId: string; readonly state: RunState }
  | { readonly kind: 'missing'; readonly runId: string }

/** A locked run, with the columns that a submission needs. */
interface LockedRun {
  seq: number
  run_id: string
  state: RunState
  contact: RunContact
  created_at: number
  /** Set if this request starts the run: its first element is not in the store yet. */
  firstMessageId?: string
}

type Inserted = NewRun & { account_id: string; created_at: number; parent_seq: number | null; parent: string | null }

const lockRun = query<{ accountId: string; runId: string }, LockedRun>(({ db, p, d }) =>
  d.forUpdate(
    db
      .selectFrom('runs')
      .select(['seq', 'run_id', 'state', 'contact', 'created_at'])
      .where('account_id', '=', p.accountId)
      .where('run_id', '=', p.runId),
  ),
)
const lockRuns = query<{ accountId: string; runIds: readonly string[] }, LockedRun>(({ db, p, d }) =>
  d.forUpdate(
    db
      .selectFrom('runs')
      .select(['seq', 'run_id', 'state', 'contact', 'created_at'])
      .where('account_id', '=', p.accountId)
      .where(d.inTexts('run_id', p.runIds)),
  ),
)
/** Inserts a run; returns no row if its id is taken. */
export const insertRun = query<Inserted, { seq: number }>(({ db, p }) =>
  db
    .insertInto('runs')
    .values({
      run_id: p.run_id,
      account_id: p.account_id,
      url: p.url,
      host: p.host,
      path: p.path,
      state: 'RUN_STARTED',
      contact: p.contact,
      created_at: p.created_at,
      labels: p.labels,
      flow_key: p.flow_key,
      caller_ip: p.caller_ip,
      parent_seq: p.parent_seq,
      parent: p.parent,
    })
    .onConflict((conflict) => conflict.columns(['account_id', 'run_id']).doNothing())
    .returning('seq'),
)
const firstMessage = query<{ seq: number }, { message_id: string }>(({ db, p }) =>
  db.selectFrom('steps').select('message_id').where('run_seq', '=', p.seq).where('position', '=', 0),
)
const confirmRun = query<{ seq: number }>(({ db, p }) =>
  db.updateTable('runs').set({ contact: 'known' }).where('seq', '=', p.seq),
)
const renameFirst = query<{ seq: number; messageId: string }>(({ db, p }) =>
  db.updateTable('steps').set({ message_id: p.messageId }).where('run_seq', '=', p.seq).where('position', '=', 0),
)

const noteWebhook = query<{ runSeq: number; eventId: string }>(({ db, p }) =>
  db
    .insertInto('run_webhooks')
    .values({ run_seq: p.runSeq, event_id: p.eventId })
    .onConflict((conflict) => conflict.columns(['run_seq', 'event_id']).doNothing()),
)

/** Stores the submissions of a request, all or none. */
export const submit = write('runs.submit', function* (args: SubmitArgs): Transaction<SubmitResult> {
  const work = new Submitting(args, yield* lockedRuns(args))
  const refusal = work.refusal()
  if (refusal) return refusal
  const results: Submitted[] = []
  for (const submission of args.submissions) results.push(yield* work.accept(submission))
  if (args.quota) yield* countDaily(args.quota, results.filter(({ kind }) => kind === 'started').length, args.at)
  const places = work.places(yield* insertElements(work.appending, args.at))
  for (const { runSeq, element } of work.appending) {
    if (element.webhook !== undefined) yield* change(noteWebhook, { runSeq, eventId: element.webhook })
  }
  const offers = yield* deliverElements([...work.appending, ...work.delivering], args.at)
  return { kind: 'accepted', results, offers, places }
})

function* lockedRuns({ accountId, submissions }: SubmitArgs): Transaction<Map<string, LockedRun>> {
  const runIds = new Set<string>()
  for (const submission of submissions) {
    runIds.add(submission.kind === 'append' ? submission.runId : submission.run.run_id)
    if (submission.kind === 'start' && submission.parent) runIds.add(submission.parent.runId)
  }
  const [runId, ...others] = runIds
  // Nearly always there is one run, and its query is cheaper than that for a list.
  const rows =
    runId === undefined || others.length > 0
      ? yield* all(lockRuns, { accountId, runIds: [...runIds] })
      : yield* all(lockRun, { accountId, runId })
  return new Map(rows.map((row) => [row.run_id, row]))
}

/** Processes one request: holds its locked runs, and collects the elements to append or to deliver again. */
class Submitting {
  readonly appending: Appending[] = []
  readonly delivering: Appending[] = []
  readonly #args: SubmitArgs
  readonly #runs: Map<string, LockedRun>

  constructor(args: SubmitArgs, runs: Map<string, LockedRun>) {
    this.#args = args
    this.#runs = runs
  }

  /** Why the request is refused. Checked before anything is written, so that nothing must be rolled back. */
  refusal(): SubmitResult | undefined {
    for (const submission of this.#args.submissions) {
      const needed = runNeededBy(submission)
      if (needed === undefined) continue
      const run = this.#runs.get(needed)
      if (!run) return { kind: 'missing', runId: needed }
      const mayHaveEnded = submission.kind === 'confirm'
      if (run.state !== 'RUN_STARTED' && !mayHaveEnded) return { kind: 'ended', runId: needed, state: run.state }
    }
    return undefined
  }

  *accept(submission: Submission): Transaction<Submitted> {
    if (submission.kind === 'append') return yield* this.#appendStep(submission)
    const { run_id: runId } = submission.run
    for (;;) {
      const existing = this.#runs.get(runId)
      const done = existing ? yield* this.#onExistingRun(existing, submission) : yield* this.#start(submission)
      if (done) return done
      // A concurrent transaction has just inserted a run with this id, and may have deleted it again.
      const others = yield* first(lockRun, { accountId: this.#args.accountId, runId })
      if (others) this.#runs.set(runId, others)
    }
  }

  /** Handles a start or confirmation of a run that exists. */
  *#onExistingRun(run: LockedRun, submission: StartOfRun): Transaction<Submitted> {
    const parent = parentOf(submission)
    if (parent) return yield* this.#onRepeatedInvocation(submission.run, parent)
    if (submission.kind === 'start' || run.contact === 'known' || run.state !== 'RUN_STARTED') return yield* exists(run)
    return yield* this.#confirm(run, submission.first)
  }

  *#appendStep({ runId, element, mark }: Submission & { kind: 'append' }): Transaction<Submitted> {
    const runSeq = this.#runs.get(runId)?.seq ?? 0
    const messageId = mark === undefined ? undefined : yield* callFor(runSeq, mark)
    if (messageId !== undefined) return { kind: 'repeated', messageId }
    this.#append(runSeq, element)
    return { kind: 'appended' }
  }

  /** `undefined`: the id is taken. */
  *#start(submission: StartOfRun): Transaction<Submitted | undefined> {
    const { run, first: first_ } = submission
    const parent = parentOf(submission)
    const { accountId, at } = this.#args
    const parentSeq = parent ? this.#seqOf(parent) : null
    const messageId = parent && (yield* invocationFor(this.#seqOf(parent), parent))
    if (messageId !== undefined) return { kind: 'repeated', messageId }
    const link = parent ? JSON.stringify(parent) : null
    const row = { ...run, account_id: accountId, created_at: at, parent_seq: parentSeq, parent: link }
    const inserted = yield* first(insertRun, row)
    if (!inserted) return undefined
    this.#runs.set(run.run_id, {
      ...run,
      seq: inserted.seq,
      state: 'RUN_STARTED',
      created_at: at,
      firstMessageId: first_.messageId,
    })
    this.#append(inserted.seq, first_)
    return { kind: 'started', runId: run.run_id, createdAt: at }
  }

  /**
   * A run with this id exists. It reports its end to the parent only if this step invoked it; otherwise the parent would
   * wait forever.
   */
  *#onRepeatedInvocation({ run_id: runId }: NewRun, parent: ParentLink): Transaction<Submitted> {
    const messageId = yield* invocationFor(this.#seqOf(parent), parent)
    if (messageId === undefined) throw new HomeportError('step_refused', { problem: takenId(runId) })
    return { kind: 'repeated', messageId }
  }

  /** `refusal` has checked that the parent exists. */
  #seqOf({ runId }: ParentLink): number {
    return this.#runs.get(runId)?.seq ?? 0
  }

  /** Keeps settings and payload of the trigger; a new message delivers the first element. */
  *#confirm(run: LockedRun, first_: NewElement): Transaction<Submitted> {
    yield* change(confirmRun, { seq: run.seq })
    run.contact = 'known'
    yield* change(renameFirst, { seq: run.seq, messageId: first_.messageId })
    const { delivery: _, ...element } = first_
    this.delivering.push({ accountId: this.#args.accountId, runSeq: run.seq, element })
    return { kind: 'confirmed', runId: run.run_id, createdAt: run.created_at }
  }

  /** Maps the new elements to their positions. */
  places(positions: readonly number[]): ElementPlace[] {
    return this.appending.map(({ runSeq, element }, index) => {
      return { runSeq, messageId: element.messageId, position: positions[index] ?? 0 }
    })
  }

  #append(runSeq: number, element: NewElement): void {
    this.appending.push({ accountId: this.#args.accountId, runSeq, element })
  }
}

const takenId = (runId: string): string =>
  `The run id "${runId}" belongs to a run that this step did not invoke, and which would never report its end to it. Invoke the workflow with another id, or without one.`

function runNeededBy(submission: Submission): string | undefined {
  if (submission.kind === 'append') return submission.runId
  if (submission.kind === 'confirm' && submission.ifUnknown === 'refuse') return submission.run.run_id
  return parentOf(submission)?.runId
}

function parentOf(submission: Submission): ParentLink | undefined {
  return submission.kind === 'start' ? submission.parent : undefined
}

function* exists(run: LockedRun): Transaction<Submitted> {
  const messageId = run.firstMessageId ?? (yield* only(firstMessage, { seq: run.seq })).message_id
  return { kind: 'exists', runId: run.run_id, createdAt: run.created_at, messageId }
}
