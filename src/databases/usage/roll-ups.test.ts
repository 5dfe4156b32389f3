import { expect, it } from 'vitest'
import { waitFor } from '../../../test/support/index.js'
import type { Store } from '../../store/index.js'
import { silentLogger } from '../../telemetry/index.js'
import * as usageRollups from '../transactions/usage-rollups.js'
import { RollUps } from './writer.js'

const HOUR_MS = 60 * 60 * 1_000
const NOW = 500_000 * HOUR_MS

it('series are rolled up again after the clock was ahead for a while', async () => {
  const rolledUpTo: number[] = []
  const run = async (operation: unknown, { endedBefore }: { endedBefore: number }) => {
    if (operation === usageRollups.expire) return 'done'
    rolledUpTo.push(endedBefore)
    return { kind: 'done' }
  }
  const rollUps = new RollUps({ store: { run } as unknown as Store, logger: silentLogger })
  rollUps.check(NOW + 1_000 * HOUR_MS, true)
  await waitFor(() => rolledUpTo.length === 2, { what: 'both tiers' })
  rollUps.check(NOW, true)
  rollUps.check(NOW + 1, true)
  await waitFor(() => rolledUpTo.length === 4, { what: 'both tiers again' })
  await rollUps.stop()
  expect(rolledUpTo.slice(2)).toEqual([NOW, NOW])
})
