import { DatabaseMeter } from '../../telemetry/index.js'
import type { Admission, ServedDatabase } from '../deps.js'
import { CREDENTIALS, RawClient, type Rig, startRig } from './rig.js'

/** Usage that a test reads and changes. */
export interface Usage {
  readonly meter: DatabaseMeter
  admission: Admission
}

/** Usage of an open database that has used nothing. */
export const newUsage = (): Usage => ({ meter: new DatabaseMeter(), admission: { kind: 'open' } })

/** A rig whose database has these limits. */
export const limited = (database: Partial<ServedDatabase>, usage = newUsage()): Promise<Rig> =>
  startRig(database, undefined, { usageOf: () => usage })

/** An answer over REST. */
export interface Answer {
  readonly status: number
  readonly body: unknown
}

/** Sends JSON over REST. */
export async function post(rig: Rig, path: string, body: unknown): Promise<Answer> {
  const headers = { authorization: `Bearer ${CREDENTIALS.token}` }
  const response = await fetch(rig.restUrl + path, { method: 'POST', body: JSON.stringify(body), headers })
  return { status: response.status, body: await response.json() }
}

/** Sends one command over REST. */
export const run = (rig: Rig, ...args: unknown[]): Promise<Answer> => post(rig, '/', args)

/** A command in the Redis protocol. */
export function frame(...args: readonly string[]): string {
  return `*${args.length}\r\n${args.map((arg) => `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`).join('')}`
}

/** A client of the Redis protocol that is logged in. */
export const login = (rig: Rig): Promise<RawClient> => new RawClient(rig.port).login()
