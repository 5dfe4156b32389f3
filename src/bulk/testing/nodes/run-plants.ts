import { QueueNodes } from '../../../queue/queue-nodes.js'
import { type Plant, patched, replacing } from '../../../queue/testing/nodes/plants.js'
import { SimulatedStore } from '../../../queue/testing/nodes/simulated-store.js'
import { write } from '../../../store/operation.js'
import { query } from '../../../store/query.js'
import { all, change, type Transaction } from '../../../store/statement.js'
import * as runsFinish from '../../../workflow/transactions/runs-finish.js'
import * as runsRead from '../../../workflow/transactions/runs-read.js'
import * as runsRestart from '../../../workflow/transactions/runs-restart.js'
import type { SubmitArgs, SubmitResult } from '../../../workflow/transactions/runs-submissions.js'
import * as runsSubmit from '../../../workflow/transactions/runs-submit.js'
import type { BatchArgs, DecidedBatch } from '../../transactions/bulk-batch.js'
import * as bulkControl from '../../transactions/bulk-control.js'
import * as bulkKinds from '../../transactions/bulk-kinds.js'
import * as bulkPaused from '../../transactions/bulk-paused.js'
import * as bulkRead from '../../transactions/bulk-read.js'
import * as bulkUndo from '../../transactions/bulk-undo.js'

type DeliveryArgs = Parameters<typeof runsRead.delivery.body>[0]

const everyStep = query<{ seq: number }, runsRead.ListedStep>(({ db, p }) =>
  db
    .selectFrom('steps')
    .select(['message_id', 'body'])
    .where('run_seq', '=', p.seq)
    .where('kind', '=', 'step')
    .orderBy('position'),
)
const wholeList = write('simulation.wholeList', function* (args: DeliveryArgs): Transaction<
  runsRead.Delivery | undefined
> {
  const found = yield* runsRead.delivery.body(args)
  if (!found || found.list.length === 0) return found
  return { ...found, list: yield* all(everyStep, args) }
})

const countOneMore = query<{ actionSeq: number }>(({ db, p }) =>
  db
    .updateTable('bulk_actions')
    .set((row) => ({ succeeded: row('succeeded', '+', 1), already_finished: row('already_finished', '-', 1) }))
    .where('seq', '=', p.actionSeq)
    .where('already_finished', '>', 0),
)
const countEnded = write('simulation.countEnded', function* (args: BatchArgs): Transaction<DecidedBatch> {
  const decided = yield* bulkKinds.cancelRunsBatch.body(args)
  yield* change(countOneMore, args)
  return decided
})

const undoOneMore = write('simulation.undoOneMore', function* (args: bulkUndo.UndoBatch): Transaction<DecidedBatch> {
  const decided = yield* bulkUndo.undoRunsBatch.body(args)
  yield* change(countOneMore, args)
  return decided
})

const forgetPause = query<object>(({ db }) => db.deleteFrom('paused_workflows'))

const pauseNothing = write(
  'simulation.pauseNothing',
  function* (args: bulkControl.ControlArgs): Transaction<bulkControl.Controlled> {
    const action = yield* bulkRead.action.body(args)
    return action ? { kind: 'changed', action: { ...action, state: 'paused' } } : { kind: 'missing' }
  },
)

const forgetParent = query<{ runId: string }>(({ db, p }) =>
  db.updateTable('runs').set({ parent_seq: null, parent: null }).where('run_id', '=', p.runId),
)
type FinishArgs = Parameters<typeof runsFinish.finishRun.body>[0]
const reportNothing = write(
  'simulation.reportNothing',
  function* (args: FinishArgs): Transaction<runsFinish.FinishRunResult> {
    yield* change(forgetParent, args)
    return yield* runsFinish.finishRun.body(args)
  },
)

let asked = 0

/** Makes a step that is sent again look like another step. */
const invokeAgain = write('simulation.invokeAgain', function* (args: SubmitArgs): Transaction<SubmitResult> {
  const submissions = args.submissions.map((one) => {
    if (one.kind !== 'start' || !one.parent) return one
    return { ...one, parent: { ...one.parent, step: { ...one.parent.step, asked: ++asked } } }
  })
  return yield* runsSubmit.submit.body({ ...args, submissions })
})

const pauseForNobody = write('simulation.pauseForNobody', function* (args: bulkPaused.PauseArgs): Transaction<
  bulkPaused.PausedRow | undefined
> {
  const row = yield* bulkPaused.pause.body(args)
  yield* change(forgetPause, {})
  return row
})

type RestartArgs = Parameters<typeof runsRestart.restartRun.body>[0]
const deliverNothing = write(
  'simulation.deliverNothing',
  function* (args: RestartArgs): Transaction<runsRestart.RestartedRun> {
    return yield* runsRestart.restartRun.body({ ...args, delivered: [] })
  },
)

/** Mistakes with runs and bulk actions that the simulation must find, by their description. */
export const RUN_PLANTS: Readonly<Record<string, Plant>> = {
  'deliver what has joined a list later': replacing(runsRead.delivery, wholeList),
  'answer a cancel before the other nodes have dropped its messages': {
    patch: () => patched(QueueNodes.prototype, 'drop', () => () => Promise.resolve()),
  },
  'answer a pause of a run before the other nodes have dropped its messages': {
    patch: () =>
      patched(QueueNodes.prototype, 'drop', (original) => {
        return function (this: QueueNodes, which) {
          return which.inFlight === 'ends' ? Promise.resolve() : original.call(this, which)
        }
      }),
  },
  'count a run as brought back that was not cancelled': replacing(bulkUndo.undoRunsBatch, undoOneMore),
  'count an ended run as cancelled': replacing(bulkKinds.cancelRunsBatch, countEnded),
  'report no end of an invoked run': replacing(runsFinish.finishRun, reportNothing),
  'invoke a run for each request of a step': replacing(runsSubmit.submit, invokeAgain),
  'let runs begin while their workflow is paused': replacing(bulkPaused.pause, pauseForNobody),
  'deliver nothing of a restarted run': replacing(runsRestart.restartRun, deliverNothing),
  'commit what a node sends that was declared dead': {
    patch: () => patched(SimulatedStore.prototype, 'actFor', () => () => undefined),
  },
  'answer a pause and go on': replacing(bulkControl.pause, pauseNothing),
}
