import { setTimeout as pause } from 'node:timers/promises'
import { randomFrom } from '../../src/base/testing/random.js'
import { FAST, type Pace } from '../crash/pace.js'
import { planFires } from '../crash/queue-ledger-store.js'
import type { Place } from '../support/index.js'
import { prepare, type Scene, startLoads } from './scene.js'
import { type FaultKind, SoakServer } from './server.js'
import { judge, quarantined } from './verdict.js'

/** One round, from an empty data directory to the final check. */
export interface RoundOptions {
  readonly seed: number
  /** How many faults. */
  readonly faults: number
  /** The longest time between two faults. */
  readonly longestLifeMs: number
  readonly place: Place
  /** URL of an empty PostgreSQL database; absent: SQLite. */
  readonly store?: string | undefined
  /** Of the clients; default: as fast as they can. */
  readonly pace?: Pace
  /** What is killed; default: everything that exists with this store. */
  readonly kinds?: readonly FaultKind[]
  /** Receives a line for each event. */
  readonly say?: (line: string) => void
}

/** The result of a round. */
export interface RoundReport {
  readonly seed: number
  /** Violations of guarantees. */
  readonly violations: readonly string[]
  /** Counts by subject. */
  readonly counts: Readonly<Record<string, number>>
  readonly faults: Readonly<Record<string, number>>
  readonly slowestStartMs: number
  /** How often the server logged each error, and how often callers got each refusal. */
  readonly errors: Readonly<Record<string, number>>
  readonly refusals: Readonly<Record<string, number>>
}

const MIN_LIFE_MS = 200
/** Kinds of faults, repeated by their frequency. */
const ON_EITHER: readonly FaultKind[] = [
  'server',
  'server',
  'launcher',
  'engine',
  'engines',
  'everything',
  'start',
  'stop',
]
const ON_POSTGRES: readonly FaultKind[] = [...ON_EITHER, 'backend', 'backend', 'backends']

/** Plays one round. Everything that it opens is closed at cleanup. */
export async function playRound(options: RoundOptions): Promise<RoundReport> {
  const random = randomFrom(options.seed)
  const { place, store, kinds = store === undefined ? ON_EITHER : ON_POSTGRES } = options
  const losesCommits = kinds.some((kind) => kind === 'backend' || kind === 'backends')
  const server = new SoakServer({ place, store, losesCommits })
  const scene = await prepare(server, await server.start(), options.pace ?? FAST)
  startLoads(scene)
  const nextKind = deal(kinds, random)
  for (let fault = 0; fault < options.faults; fault++) {
    // Most lives are short; some are long enough for a restore.
    await pause(MIN_LIFE_MS + random() ** 2 * (options.longestLifeMs - MIN_LIFE_MS))
    await server.checkAlive()
    await makeFault(scene, nextKind(), options, random)
    options.say?.(progressOf(scene))
  }
  scene.loads.finish()
  await server.fault('server', random)
  await settle(scene)
  await server.start()
  await scene.loads.ended()
  options.say?.('the load is over; everything comes to rest')
  const violations = await judge(scene)
  return reportOf(options.seed, scene, violations)
}

/** Returns each kind once before any is repeated, in random order, so that a few faults have many kinds. */
function deal(kinds: readonly FaultKind[], random: () => number): () => FaultKind {
  let left: FaultKind[] = []
  return () => {
    if (left.length === 0) left = [...kinds]
    return left.splice(Math.floor(random() * left.length), 1)[0] ?? 'server'
  }
}

async function makeFault(
  scene: Scene,
  kind: FaultKind,
  { longestLifeMs }: RoundOptions,
  random: () => number,
): Promise<void> {
  const after = await scene.server.fault(kind, random)
  await settle(scene)
  if (after === 'up') return
  await planFires(scene.server.place, scene.queue.ledger, longestLifeMs, random)
  await scene.server.start()
}

/** Waits for the requests sent before a fault, which belong to the life before it. */
async function settle({ queue }: Scene): Promise<void> {
  await queue.destinations.settled()
  queue.ledger.life++
}

function progressOf({ server, queue, runs, rich, data, management }: Scene): string {
  const faults = [...server.faults].map(([kind, times]) => `${kind} ${times}`).join(', ')
  const done = [
    `${queue.ledger.accepted.size + runs.ledger.published.size} messages`,
    `${runs.ledger.triggered.size + runs.ledger.sealed.size + rich.triggered.size} runs`,
    `${data.ledger.acknowledged} writes`,
    `${management.passing.size} databases`,
    `${management.restores} restores`,
  ]
  return `killed: ${faults}; acknowledged: ${done.join(', ')}`
}

function reportOf(seed: number, scene: Scene, violations: readonly string[]): RoundReport {
  const { server, loads, queue, runs, rich, data, management } = scene
  return {
    seed,
    violations,
    counts: {
      messages: queue.ledger.accepted.size + runs.ledger.published.size,
      arrivals: queue.ledger.arrivals.length,
      'schedule fires': [...queue.ledger.fires.values()].reduce((sum, fires) => sum + fires, 0),
      'runs to success': runs.ledger.triggered.size + rich.triggered.size,
      'runs cancelled': runs.ledger.sealed.size,
      'bulk actions': runs.ledger.actions.length,
      'writes to databases': data.ledger.acknowledged,
      'of these lost within the documented 2 s': data.ledger.lostWithinWindow + management.lostWithinWindow,
      'databases made': management.passing.size,
      'databases deleted': management.count('deleted'),
      restores: management.restores,
      users: management.users.size + management.formerUsers.size,
      starts: server.lives,
      'ends of logs set aside': quarantined(server.place.dataDir).length,
    },
    faults: Object.fromEntries(server.faults),
    slowestStartMs: Math.round(server.slowestStartMs),
    errors: Object.fromEntries(server.errors),
    refusals: Object.fromEntries(loads.refusals),
  }
}
