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

/** The addresses of a server. */
export type Addresses = Static<typeof AddressesSchema>

/** The options that decide about the addresses. */
export const ADDRESS_OPTIONS = Object.keys(AddressesSchema.properties) as readonly (keyof Addresses)[]

const pathIn = (dataDir: string): string => join(dataDir, 'addresses.json')

/**
 * Writes the server's addresses to its data directory, for commands without address options. A failure is ignored: the
 * server works without the file.
 */
export function recordAddresses({ dataDir, ...config }: Config): void {
  const { host, apiPort, restPort, queuePort, publicApiUrl, publicRestUrl, publicQueueUrl } = config
  const addresses: Addresses = { host, apiPort, restPort, queuePort, publicApiUrl, publicRestUrl, publicQueueUrl }
  try {
    writeFileSync(pathIn(dataDir), `${JSON.stringify(addresses, null, 2)}\n`, { mode: 0o600 })
  } catch {
    // Commands then need address options, as they do before the first start.
  }
}

/** Whether a server has ever started completely from this data directory. */
export const hasServed = (dataDir: string): boolean => existsSync(pathIn(dataDir))

/** The addresses of the last server that ran from this data directory; undefined when they are unknown. */
export function lastAddresses(dataDir: string): Addresses | undefined {
  try {
    const found: unknown = JSON.parse(readFileSync(pathIn(dataDir), 'utf8'))
    return Value.Check(AddressesSchema, found) ? found : undefined
  } catch {
    // The configuration decides, as it does before the first start.
    return undefined
  }
}
