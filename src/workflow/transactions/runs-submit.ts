import { HomeportError } from '../../contract/errors/errors.js'
import { countDaily } from '../../queue/transactions/daily-messages.js'
import type { PendingRow } from '../../queue/transactions/messages.js'
import type { KeyRule } from '../../queue/transactions/rule-keys.js'
import { combineCalls, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { change, first, insertUnlessTaken, only, type Transaction } from '../../store/statement.js'
import { type Appending, appendAndEnd, type ListEnd } from './runs-append.js'
import { carryDone } from './runs-done.js'
import { insertRun, type LockedRun, type LockedRuns, lockedRuns, type RunToInsert, runRow } from './runs-locked.js'
import { pauseBegun } from './runs-pause.js'
import { callFor, invocationFor } from './runs-repeats.js'
import type { NewElement, NewRun, ParentLink } from './runs-rows.js'
import { holdKey, lockForRun } from './runs-rules.js'
import type { ElementPlace, Submission, SubmitArgs, SubmitResult, Submitted } from './runs-submissions.js'
import { submitCompactly } from './runs-submit-compact.js'
import { isPlain, submitOne } from './runs-submit-one.js'
import { asExisting, ruleOf, successorsOf } from './runs-successors.js'

type StartOfRun = Exclude<Submission, { kind: 'append' }>

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

const removedBy = (result: SubmitResult): readonly number[] =>
  result.kind === 'accepted' ? (result.removed ?? []) : []

const submitAll = write('runs.submitAll', submitTogether, {
  carrying: carryDone({
    load: ([first, ...others]: readonly SubmitArgs[], carried) => (first ? [{ ...first, carried }, ...others] : []),
    removedBy: (results: readonly SubmitResult[]) => results.flatMap(removedBy),
  }),
})

/** Stores the submissions of a request, all or none. */
export const submit = write(
  'runs.submit',
  function* (args: SubmitArgs): Transaction<SubmitResult> {
    const [result] = yield* submitTogether([args])
    if (!result) throw new Error('a request has no result')
    return result
  },
  {
    combining: combineCalls(submitAll, {
      only: 'postgres',
      // An account at its limit is refused often, and must not make the requests of others run again. Requests that lock
      // keys could deadlock with requests that lock the same keys in another order.
      except: ({ quota, submissions }) => quota !== undefined || submissions.some(ruleOf),
      join: (all_) => all_,
      split: (results) => results,
      bytesOf,
      keysOf,
    }),
    shortcut: { operation: submitOne, fits: isPlain },
    compact: submitCompactly,
    carrying: carryDone({ load: (args: SubmitArgs, carried) => ({ ...args, carried }), removedBy }),
  },
)

function bytesOf({ submissions }: SubmitArgs): number {
  return submissions.reduce((sum, one) => sum + (one.kind === 'append' ? one.element : one.first).body.byteLength, 0)
}

/** Runs whose state the request depends on, or changes. Plain steps name none, so several steps of a run may be combined. */
function keysOf({ accountId, submissions }: SubmitArgs): string[] {
  return submissions.flatMap((one) => {
    const isPlain = one.kind === 'append' && one.mark === undefined
    return isPlain ? [] : runsOf(one).map((runId) => `${accountId}/${runId}`)
  })
}

function runsOf(submission: Submission): string[] {
  if (submission.kind === 'append') return [submission.runId]
  const parent = parentOf(submission)
  return parent ? [submission.run.run_id, parent.runId] : [submission.run.run_id]
}

/** Stores requests of any accounts as if one came after the other. */
function* submitTogether(requests: readonly SubmitArgs[]): Transaction<SubmitResult[]> {
  const { works, lists } = yield* prepare(requests)
  const refusals = works.map((work) => work.refusal())
  const accepted = works.filter((_, index) => refusals[index] === undefined)
  yield* insertRuns(accepted)
  const results = new Map<Submitting, Submitted[]>()
  for (const work of accepted) results.set(work, yield* work.acceptAll())
  yield* countStarted(accepted)
  const held: number[] = []
  for (const work of accepted) held.push(...(yield* pauseBegun(work.begun, work.args.paused)))
  const appending = accepted.flatMap((work) => work.appending)
  for (const { runSeq, element } of appending) {
    if (element.webhook !== undefined) yield* change(noteWebhook, { runSeq, eventId: element.webhook })
  }
  const delivering = accepted.flatMap((work) => work.delivering)
  const allLists = [...lists, ...accepted.flatMap((work) => work.lists)]
  const carried = requests.flatMap((request) => request.carried ?? [])
  const appended = yield* appendAndEnd(appending, delivering, allLists, { carried, held })
  const positions = appended.positions.values()
  const rows = new Map(appended.messages.map((row) => [row.message_id, row]))
  return works.map((work, index) => {
    const refusal = refusals[index]
    if (refusal) return refusal
    const result = work.result(results.get(work) ?? [], positions, rows)
    // The carried deliveries of all requests: the first accepted request reports them, regardless of which carried them.
    return work === accepted[0] ? { ...result, removed: appended.removed } : result
  })
}

/** Counts the started runs of accounts with a daily limit. Refuses requests that exceed it. */
function* countStarted(works: readonly Submitting[]): Transaction<void> {
  for (const { args, started } of works) if (args.quota) yield* countDaily(args.quota, started, args.at)
}

/** Locks the runs of the requests, account by account. */
function* prepare(requests: readonly SubmitArgs[]): Transaction<{ works: Submitting[]; lists: ListEnd[] }> {
  const ofAccounts = new Map<string, Set<string>>()
  for (const { accountId, submissions } of requests) {
    const runIds = ofAccounts.get(accountId) ?? new Set()
    for (const submission of submissions) for (const runId of runsOf(submission)) runIds.add(runId)
    ofAccounts.set(accountId, runIds)
  }
  const locked = new Map<string, LockedRuns['runs']>()
  const lists: ListEnd[] = []
  // Always the same order, so that transactions over several accounts cannot deadlock.
  for (const accountId of [...ofAccounts.keys()].sort()) {
    const found = yield* lockedRuns({ accountId, runIds: [...(ofAccounts.get(accountId) ?? [])] })
    locked.set(accountId, found.runs)
    lists.push(...found.lists)
  }
  return { works: requests.map((args) => new Submitting(args, locked.get(args.accountId) ?? new Map())), lists }
}

/** Inserts the runs that certainly start, with one statement for each account. Leaves out ids that were just taken. */
function* insertRuns(works: readonly Submitting[]): Transaction<void> {
  const byAccount = new Map<string, Submitting[]>()
  for (const work of works) {
    if (work.starting.length > 0) byAccount.set(work.accountId, [...(byAccount.get(work.accountId) ?? []), work])
  }
  for (const ofAccount of byAccount.values()) {
    const runs = ofAccount.flatMap((work) => work.starting)
    const seqs = yield* insertUnlessTaken('runs', runs.map(runRow), 'run_id', ['account_id', 'run_id'])
    const fresh = new Map(runs.map(({ run_id }, index) => [run_id, seqs[index]]))
    for (const work of ofAccount) work.fresh = fresh
  }
}

/** Processes one request. Has the locked runs of its account, and collects the elements to append or to deliver again. */
class Submitting {
  readonly appending: (Appending & { readonly at: number })[] = []
  readonly delivering: (Appending & { readonly at: number })[] = []
  /** The number of runs that it has started. */
  started = 0
  /** Lists of runs that another transaction started in the meantime. */
  readonly lists: ListEnd[] = []
  /** Runs that it has started. */
  readonly begun: { seq: number; url: string }[] = []
  /** Numbers of runs that this transaction has just inserted and that no submission has taken over yet. */
  fresh = new Map<string, number | undefined>()
  /** Runs that were cancelled for new ones with their key. */
  readonly #cancelled: number[] = []
  /** Messages that follow from the end of cancelled runs. */
  readonly #notices: PendingRow[] = []
  readonly args: SubmitArgs
  readonly #runs: Map<string, LockedRun>

  constructor(args: SubmitArgs, runs: Map<string, LockedRun>) {
    this.args = args
    this.#runs = runs
  }

  get accountId(): string {
    return this.args.accountId
  }

  /** The runs that start if their ids are still free. Without invoked runs and runs with a key: these need another run. */
  get starting(): RunToInsert[] {
    const runs = new Map<string, RunToInsert>()
    for (const submission of this.args.submissions) {
      if (submission.kind === 'append' || parentOf(submission) || ruleOf(submission)) continue
      const { run } = submission
      if (!this.#runs.has(run.run_id) && !runs.has(run.run_id)) runs.set(run.run_id, this.#toInsert(run))
    }
    return [...runs.values()]
  }

  #toInsert(run: NewRun, parentSeq: number | null = null, parent: string | null = null): RunToInsert {
    const { accountId, at } = this.args
    return { ...run, account_id: accountId, created_at: at, parent_seq: parentSeq, parent }
  }

  *acceptAll(): Transaction<Submitted[]> {
    const { submissions } = this.args
    const results: Submitted[] = new Array(submissions.length)
    const successors = successorsOf(submissions)
    for (const [index, submission] of submissions.entries())
      if (!successors.has(index)) results[index] = yield* this.accept(submission)
    for (const [index, successor] of successors) {
      const [submission, result] = [submissions[successor], results[successor]]
      if (submission && result) results[index] = asExisting(submission, result)
    }
    this.started = results.filter(({ kind }) => kind === 'started').length
    return results
  }

  /** @param positions of this and all later requests. */
  result(
    results: readonly Submitted[],
    positions: Iterator<number>,
    rows: ReadonlyMap<string, PendingRow>,
  ): SubmitResult {
    const offers = [...this.appending, ...this.delivering].flatMap(({ element }) => rows.get(element.messageId) ?? [])
    const all = { results, offers: [...offers, ...this.#notices], places: this.#places(positions) }
    return { kind: 'accepted', ...all, ...(this.#cancelled.length > 0 && { cancelled: this.#cancelled }) }
  }

  /** Why the request is refused. Checked before anything is written, so that nothing must be rolled back. */
  refusal(): SubmitResult | undefined {
    for (const submission of this.args.submissions) {
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
      const found = yield* lockedRuns({ accountId: this.args.accountId, runIds: [runId] })
      for (const others of found.runs.values()) this.#runs.set(runId, others)
      this.lists.push(...found.lists)
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
    this.#append(runSeq, forRun(runSeq, element))
    return { kind: 'appended' }
  }

  /** `undefined`: the id is taken. */
  *#start(submission: StartOfRun): Transaction<Submitted | undefined> {
    const { run, first: first_ } = submission
    const parent = parentOf(submission)
    const parentSeq = parent ? this.#seqOf(parent) : null
    const messageId = parent && (yield* invocationFor(this.#seqOf(parent), parent))
    if (messageId !== undefined) return { kind: 'repeated', messageId }
    const rule = ruleOf(submission)
    if (rule) return yield* this.#startWithKey(submission, rule)
    const seq = this.fresh.get(run.run_id) ?? (yield* this.#insert(run, parentSeq, parent))
    return seq === undefined ? undefined : this.#begin(run, first_, seq)
  }

  /** Starts a run with a debounce or singleton key, unless another one holds the key. */
  *#startWithKey({ run, first: first_ }: StartOfRun, rule: KeyRule): Transaction<Submitted | undefined> {
    const { accountId, at } = this.args
    const key = yield* lockForRun(accountId, run.run_id, rule, at)
    if (key.kind === 'repeated') return undefined
    if (key.kind === 'taken') {
      const { by } = key
      const known = this.#runs.get(by.run_id) ?? { ...by, state: 'RUN_STARTED', contact: 'known' }
      return { ...(yield* exists(known)), isHolder: true }
    }
    if (key.replaced) this.#cancelled.push(key.replaced.seq)
    this.#notices.push(...key.offers)
    const seq = yield* this.#insert(run, null, undefined)
    if (seq === undefined) return undefined
    yield* holdKey(accountId, rule, { ...key, runSeq: seq })
    const element = key.dueAt === undefined ? first_ : { ...first_, dueAt: key.dueAt }
    const started = this.#begin(run, element, seq)
    return key.replaced ? { ...started, replaced: key.replaced.run_id } : started
  }

  #begin(run: NewRun, first_: NewElement, seq: number): Submitted & { kind: 'started' | 'confirmed' } {
    const { at } = this.args
    this.fresh.delete(run.run_id)
    this.begun.push({ seq, url: run.url })
    this.#runs.set(run.run_id, {
      ...run,
      seq,
      state: 'RUN_STARTED',
      created_at: at,
      firstMessageId: first_.messageId,
    })
    this.#append(seq, first_)
    return { kind: 'started', runId: run.run_id, createdAt: at }
  }

  *#insert(run: NewRun, parentSeq: number | null, parent: ParentLink | undefined): Transaction<number | undefined> {
    const link = parent ? JSON.stringify(parent) : null
    return (yield* first(insertRun, this.#toInsert(run, parentSeq, link)))?.seq
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
    this.delivering.push({ accountId: this.args.accountId, runSeq: run.seq, element, at: this.args.at })
    return { kind: 'confirmed', runId: run.run_id, createdAt: run.created_at }
  }

  #places(positions: Iterator<number>): ElementPlace[] {
    return this.appending.map(({ runSeq, element }) => {
      return { runSeq, messageId: element.messageId, position: positions.next().value ?? 0 }
    })
  }

  #append(runSeq: number, element: NewElement): void {
    this.appending.push({ accountId: this.args.accountId, runSeq, element, at: this.args.at })
  }
}

/**
 * Leaves out cached settings of an older run with the same id: another node may have started the new run. The store has the
 * settings of the new run.
 */
function forRun(runSeq: number, element: NewElement): NewElement {
  if (element.deliveryOf === undefined || element.deliveryOf === runSeq) return element
  const { delivery: _, ...others } = element
  return others
}

const takenId = (runId: string): string =>
  `The run id "${runId}" belongs to a run that this step did not invoke, so the step would never get its result. Invoke the workflow with another id, or without one.`

function runNeededBy(submission: Submission): string | undefined {
  if (submission.kind === 'append') return submission.runId
  if (submission.kind === 'confirm' && submission.ifUnknown === 'refuse') return submission.run.run_id
  return parentOf(submission)?.runId
}

function parentOf(submission: Submission): ParentLink | undefined {
  return submission.kind === 'start' ? submission.parent : undefined
}

function* exists(run: LockedRun): Transaction<Submitted & { kind: 'exists' }> {
  const messageId = run.firstMessageId ?? (yield* only(firstMessage, { seq: run.seq })).message_id
  return { kind: 'exists', runId: run.run_id, createdAt: run.created_at, messageId }
}
