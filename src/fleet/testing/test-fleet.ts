import { Redis } from 'iovalkey'
import { atCleanup, tempDir } from '../../../test/support/index.js'
import { systemClock } from '../../base/index.js'
import { type RecordedLine, recordedLog } from '../../telemetry/testing/recorded-log.js'
import {
  createFleet,
  type EngineEndpoint,
  type EngineInfo,
  type EngineSpec,
  type Fleet,
  type FleetOptions,
  probeEngine,
} from '../index.js'

/** A fleet with real engines in a directory of its own. */
export interface TestFleet {
  readonly fleet: Fleet
  readonly dataDir: string
  readonly lines: readonly RecordedLine[]
}

let probed: Promise<EngineInfo> | undefined

/** The engine of this machine, probed once. */
export function localEngine(): Promise<EngineInfo> {
  probed ??= probeEngine()
  return probed
}

/** Starts a fleet that is stopped at the end of the test file. */
export async function startFleet(options: Partial<FleetOptions> = {}): Promise<TestFleet> {
  const { logger, lines } = recordedLog()
  const dataDir = options.dataDir ?? tempDir()
  const fleet = createFleet({ dataDir, engine: await localEngine(), clock: systemClock, logger, ...options })
  atCleanup(() => fleet.stop())
  await fleet.start()
  return { fleet, dataDir, lines }
}

/** The password of `default` in `specOf`. */
export const PASSWORD = 'a password "with" spaces and \\ signs'

/** A desired state for one primary in `us-east-1` and a replica in each further region. */
export function specOf(
  databaseId: string,
  replicas: readonly string[] = [],
  change: Partial<EngineSpec> = {},
): EngineSpec {
  return {
    databaseId,
    members: [
      { region: 'us-east-1', role: 'primary' },
      ...replicas.map((region) => ({ region, role: 'replica' }) as const),
    ],
    users: [{ name: 'default', password: PASSWORD, rules: '~* &* +@all -@dangerous +info' }],
    maxMemoryBytes: 64 * 1024 * 1024,
    eviction: false,
    persistence: 'append-only',
    state: 'running',
    ...change,
  }
}

/** A client logged in as `default`. It does not reconnect, and disconnects after the test file. */
export function clientOf(endpoint: EngineEndpoint | undefined, password = PASSWORD): Redis {
  if (!endpoint) throw new Error('there is no such endpoint')
  const client = new Redis({
    path: endpoint.socketPath,
    password,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    enableReadyCheck: false,
  })
  client.on('error', () => {})
  atCleanup(() => client.disconnect())
  return client
}
