import { resolve } from 'node:path'
import type { Settings } from './options.js'

/** Options whose default depends on other options; in a `Config` they always have a value. */
type Derived =
  | 'publicApiUrl'
  | 'publicRestUrl'
  | 'publicQueueUrl'
  | 'publicRedisHost'
  | 'redisTlsByDefault'
  | 'deliveryTargets'
  | 'backupsPathStyle'

/** The configuration of a server: one frozen object, made once at start. Field names are those of the options table. */
export type Config = Omit<Settings, Derived> & { readonly [Name in Derived]: NonNullable<Settings[Name]> } & {
  /** The public URLs that the settings name. A public URL that they do not name is an address of this server. */
  readonly givenUrls: Pick<Settings, 'publicApiUrl' | 'publicQueueUrl'>
}

/** Fills in defaults that depend on other options, and makes paths absolute. */
export function derive(settings: Settings, workingDir: string): Config {
  const { publicApiUrl, publicQueueUrl } = settings
  const urlOf = (port: number): string => `http://${dialable(settings.host)}:${port}`
  return freezeDeeply({
    ...settings,
    dataDir: resolve(workingDir, settings.dataDir),
    backupsCredentialsFile: absolute(settings.backupsCredentialsFile, workingDir),
    plansFile: absolute(settings.plansFile, workingDir),
    tlsCertFile: absolute(settings.tlsCertFile, workingDir),
    tlsKeyFile: absolute(settings.tlsKeyFile, workingDir),
    givenUrls: { publicApiUrl, publicQueueUrl },
    publicApiUrl: publicApiUrl ?? urlOf(settings.apiPort),
    publicRestUrl: settings.publicRestUrl ?? urlOf(settings.restPort),
    publicQueueUrl: publicQueueUrl ?? urlOf(settings.queuePort),
    publicRedisHost: settings.publicRedisHost ?? redisHost(settings.host),
    backupsPathStyle: settings.backupsPathStyle ?? settings.backupsEndpoint !== undefined,
    deliveryTargets: settings.deliveryTargets ?? (isLoopback(settings.host) ? 'everything' : 'public'),
    redisTlsByDefault: settings.redisTlsByDefault ?? (settings.redisDomain !== undefined || !isLoopback(settings.host)),
  })
}

const absolute = (path: string | undefined, workingDir: string): string | undefined =>
  path === undefined ? undefined : resolve(workingDir, path)

/** Where clients of databases connect if nothing else is set. */
function redisHost(host: string): string {
  return isWildcard(host) || host === '127.0.0.1' || host === '::1' ? 'localhost' : host
}

/** The host part of a URL. A wildcard is an address to listen on, not to connect to. */
function dialable(host: string): string {
  if (isWildcard(host)) return 'localhost'
  return host.includes(':') ? `[${host}]` : host
}

function freezeDeeply<Value extends object>(value: Value): Value {
  for (const part of Object.values(value)) if (typeof part === 'object' && part !== null) freezeDeeply(part)
  return Object.freeze(value)
}

/** Whether only this machine can reach a listener on the address. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\./.test(host)
}

/** Whether the address means "every interface". */
export function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || host === '::'
}
