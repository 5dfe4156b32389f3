import { isObject } from '../../../base/index.js'
import { Tenure } from '../../../cluster/membership.js'
import * as nodeRows from '../../../cluster/transactions/cluster-nodes.js'
import * as partitionRows from '../../../cluster/transactions/cluster-partitions.js'
import { type Operation, read, write } from '../../../store/operation.js'
import { query } from '../../../store/query.js'
import { all, change, type Transaction } from '../../../store/statement.js'
import type { MemoryStore } from '../../../store/testing/memory-store.js'
import { Backlog } from '../../dispatcher/backlog.js'
import { ChangesDuringLoad } from '../../dispatcher/changes-during-load.js'
import { FlowControl } from '../../dispatcher/flow-control.js'
import { Hints } from '../../dispatcher/hints.js'
import { DROP, DUE, type DueHint } from '../../peer-messages.js'
import { toPendingRow } from '../../transactions/messages.js'
import * as messagesPublish from '../../transactions/messages-publish.js'
import * as schedules from '../../transactions/schedules.js'
import type { Redirect } from './simulated-links.js'
import type { SimulatedNode } from './simulated-node.js'
import type { Timeline } from './timeline.js'

/** A mistake that a test plants, to see that the simulation finds it. Absent members change nothing. */
export interface Plant {
  /** Replaces a transaction before a node calls it. */
  readonly replace?: (node: SimulatedNode, operation: AnyWrite, args: unknown) => AnyWrite
  /** Sends calls to the wrong node. */
  readonly redirect?: Redirect
  /** Changes the behaviour of classes. Returns a function that undoes the change. */
  readonly patch?: (timeline: Timeline, memory: MemoryStore) => () => void
}

type AnyWrite = Pick<Operation<never, unknown>, 'name'>

/** Replaces a method of a class until the returned function is called. */
export function patched<Class extends object, Name extends keyof Class>(
  prototype: Class,
  name: Name,
  make: (original: Class[Name]) => Class[Name],
): () => void {
  const original = prototype[name]
  prototype[name] = make(original)
  return () => {
    prototype[name] = original
  }
}

const buryAnyway = query<{ incarnation: number }>(({ db, p }) =>
  db
    .updateTable('nodes')
    .set({ state: 'dead' })
    .where('incarnation', '=', p.incarnation)
    .where('state', 'in', ['live', 'draining']),
)
const declareDeadAnyway = write(
  'simulation.declareDead',
  function* (args: { incarnation: number; beat: number }): Transaction<boolean> {
    return (yield* change(buryAnyway, args)) === 1
  },
)

const freePartitions = query<{ most: number }, { partition: number; epoch: number }>(({ db, p }) =>
  db
    .selectFrom('partitions')
    .select(['partition', 'epoch'])
    .where(({ or, eb }) =>
      or([
        eb('owner', 'is', null),
        eb('owner', 'in', eb.selectFrom('nodes').select('incarnation').where('state', 'in', ['dead', 'left'])),
      ]),
    )
    .orderBy('partition')
    .limit(p.most),
)
const own = query<{ partition: number; incarnation: number }>(({ db, p }) =>
  db
    .updateTable('partitions')
    .set((row) => ({ owner: p.incarnation, epoch: row('epoch', '+', 1), notes: null }))
    .where('partition', '=', p.partition),
)
const takeAnyway = write('simulation.take', function* (args: { incarnation: number; most: number }): Transaction<
  partitionRows.PartitionRow[]
> {
  const { incarnation, most } = args
  const free = yield* all(freePartitions, { most })
  for (const { partition } of free) yield* change(own, { partition, incarnation })
  return free.map(({ partition, epoch }) => ({ partition, owner: incarnation, epoch: epoch + 1 }))
})

const lastMessage = query<object, { seq: number }>(({ db, d }) => db.selectNoFrom(d.lastNumber('messages').as('seq')))
const newest = read('simulation.newest', function* (_: object): Transaction<number> {
  return (yield* all(lastMessage, {}))[0]?.seq ?? 0
})

/** Hints for the messages that a node is about to publish in partitions of other nodes. */
function foreignHints(node: SimulatedNode, args: unknown, next: number): DueHint[] {
  if (!isObject(args) || !Array.isArray(args.entries)) return []
  return args.entries.flatMap(({ message }: { message: Parameters<typeof toPendingRow>[0] }, index) => {
    const { partition, next_at: nextAt, seq } = toPendingRow(message, next + index)
    return node.cluster.owns(partition) ? [] : [{ partition, places: [{ nextAt, seq }], keys: [] }]
  })
}

/** Sends hints before the commit, with the numbers that the messages will have. */
function hintsBeforeCommit(): Plant {
  let memory: MemoryStore | undefined
  return {
    patch: (_, given) => {
      memory = given
      return patched(Hints.prototype, 'addRow', () => () => undefined)
    },
    replace: (node, operation, args) => {
      if (operation.name !== messagesPublish.publish.name || !memory) return operation
      const next = memory.run(newest, {}) + 1
      for (const hint of foreignHints(node, args, next)) node.cluster.hint(hint.partition, DUE, hint)
      return operation
    },
  }
}

/** Replaces one operation by another one. */
export const replacing = ({ name }: AnyWrite, other: AnyWrite): Plant => ({
  replace: (_, operation) => (operation.name === name ? other : operation),
})

const dueAgain = query<Pick<schedules.Fire, 'scheduleId' | 'dueAt'>>(({ db, p }) =>
  db.updateTable('schedules').set({ next_at: p.dueAt }).where('schedule_id', '=', p.scheduleId),
)
const fireAgain = write('simulation.fireAgain', function* (args: schedules.Fire): Transaction<schedules.Fired> {
  const fired = yield* schedules.fire.body(args)
  yield* change(dueAgain, args)
  return fired
})

const widenQueues = query<object>(({ db }) => db.updateTable('queues').set({ parallelism: 3 }))
const publishAtOnce = write(
  'simulation.publishAtOnce',
  function* (args: Parameters<typeof messagesPublish.publish.body>[0]): Transaction<messagesPublish.Published> {
    yield* change(widenQueues, {})
    return yield* messagesPublish.publish.body(args)
  },
)

/** The mistakes that the simulation must find, by description. */
export const PLANTS: Readonly<Record<string, Plant>> = {
  'declare dead without the beat': replacing(nodeRows.declareDead, declareDeadAnyway),
  'take without being live': replacing(partitionRows.take, takeAnyway),
  'forget what ended while a load ran': {
    patch: () => patched(ChangesDuringLoad.prototype, 'isOutdated', () => () => false),
  },
  'hint before the commit': hintsBeforeCommit(),
  'act from the time of the answer': {
    patch: (timeline) =>
      patched(Tenure.prototype, 'beaten', (original) => {
        return function (this: Tenure, sent) {
          const { current } = timeline
          original.call(this, current ? { monotonicMs: current.monotonicMs(), wallMs: current.wallMs } : sent)
        }
      }),
  },
  'load nothing after a gain': {
    patch: () =>
      patched(Backlog.prototype, 'rewind', (original) => {
        return function (this: Backlog, what) {
          if (what !== 'covered') original.call(this, what)
        }
      }),
  },
  'forget at the wrong node': {
    redirect: (topic, to, all) => (topic === DROP ? (all.find((each) => each !== to) ?? to) : to),
  },
  'send several of a queue at once': replacing(messagesPublish.publish, publishAtOnce),
  'begin the period of a key again after a hand-over': {
    patch: () => patched(FlowControl.prototype, 'resume', () => () => undefined),
  },
  'leave a schedule due when it has fired': replacing(schedules.fire, fireAgain),
}
