import { Agent, fetch } from 'undici'

/** Shared by the tests of one process; its connections close when they are idle. */
const dispatcher = new Agent({ connect: { timeout: 0 } })

/**
 * `fetch` without a connect timeout, for very many requests at once: each has its own connection, and a busy machine may
 * take longer for the last of them than the ten seconds of `fetch`.
 */
export const patientFetch: typeof fetch = (input, init) => fetch(input, { ...init, dispatcher })
