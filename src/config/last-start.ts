import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Static, Type } from 'typebox'
import { Value } from 'typebox/value'
import type { Config } from './derive.js'

const AddressesSchema = Type.Object({
  host: Type.String(),
  apiPort: Type.Integer(),
  restPort: Type.Integer(),
  queuePort: Type.Integer(),
  publicApiUrl: Type.String(),
  publicRestUrl: Type.String(),
  publicQueueUrl: Type.String(),
})

/** Where a server is reached. */
export type Addresses = Static<typeof AddressesSchema>

/** The options that decide about it. */
export const ADDRESS_OPTIONS = Object.keys(AddressesSchema.properties) as readonly (keyof Addresses)[]

const pathIn = (dataDir: string): string => join(dataDir, 'addresses.json')

/**
 * Leaves the addresses of a server that serves in its data directory, for commands that are not told them. A server
 * serves also where that is not possible.
 */
export function noteAddresses({ dataDir, ...config }: Config): void {
  const { host, apiPort, restPort, queuePort, publicApiUrl, publicRestUrl, publicQueueUrl } = config
  const addresses: Addresses = { host, apiPort, restPort, queuePort, publicApiUrl, publicRestUrl, publicQueueUrl }
  try {
    writeFileSync(pathIn(dataDir), `${JSON.stringify(addresses, null, 2)}\n`, { mode: 0o600 })
  } catch {
    // The options decide, as they do without the file.
  }
}

/** Whether a server has ever served from this data directory. A start that failed has not. */
export const hasServed = (dataDir: string): boolean => existsSync(pathIn(dataDir))

/** The addresses of the server that served from this data directory last; undefined when nobody can tell. */
export function lastAddresses(dataDir: string): Addresses | undefined {
  try {
    const found: unknown = JSON.parse(readFileSync(pathIn(dataDir), 'utf8'))
    return Value.Check(AddressesSchema, found) ? found : undefined
  } catch {
    // Without them the configuration decides, as it does before the first start.
    return undefined
  }
}
