/**
 * The fleet: the engine processes of all databases.
 */
export { probeEngine, requireUsableEngine } from './probe.js'
export { createFleet } from './fleet.js'
export type * from './types.js'
