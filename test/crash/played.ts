import { isSampled } from '../support/index.js'

/**
 * Whether this run plays a campaign with several nodes. A run of all tests plays one of them, another one in another run
 * (`test/support/sample.ts`), because each takes as much processor time as all tests of a module; `npm run crash` plays
 * the one that it is asked for.
 */
export function isPlayed(campaign: 'nodes' | 'takeover'): boolean {
  return process.env.HOMEPORT_CRASH_CYCLES !== undefined || isSampled(campaign === 'nodes' ? 0 : 1, 2)
}
