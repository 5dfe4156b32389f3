import type { Traffic } from '../deps.js'

/** The data plane of databases that nobody uses. */
export const NO_TRAFFIC: Traffic = {
  meterOf: () => undefined,
  release: () => true,
  hold: () => true,
  proceed: () => undefined,
  isReceiving: () => false,
  abortIncomplete: () => undefined,
  disconnectClients: () => undefined,
}
