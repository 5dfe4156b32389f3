import { Agent, fetch } from 'undici'

/** The connections of the tests of one process, which close by themselves when nobody uses them. */
const dispatcher = new Agent({ connect: { timeout: 0 } })

/**
 * `fetch` for very many requests at the same time. Each has a connection of its own, and a machine that is busy may take
 * longer over the last of them than the ten seconds after which `fetch` gives up.
 */
export const patientFetch: typeof fetch = (input, init) => fetch(input, { ...init, dispatcher })
