import { isIP } from 'node:net'
import { isLoopback, isWildcard } from './derive.js'
import { parseObjectPlace } from './object-place.js'
import type { Settings } from './options.js'

const HTTP_PORTS = ['apiPort', 'restPort', 'queuePort'] as const

type PortOption = (typeof HTTP_PORTS)[number] | 'redisDomainPort' | 'peerPort'

/** Options whose ports are in use. */
function portOptions({ redisDomain, node }: Settings): readonly PortOption[] {
  const ofDomain = redisDomain === undefined ? [] : (['redisDomainPort'] as const)
  return [...HTTP_PORTS, ...ofDomain, ...(node === undefined ? [] : (['peerPort'] as const))]
}

/** Conflicts between options that are valid on their own: one sentence per problem, naming both. */
export function relationProblems(settings: Settings): string[] {
  return [
    ...samePorts(settings),
    ...portsInRange(settings),
    ...exposure(settings),
    ...tlsProblems(settings),
    ...nodeProblems(settings),
    ...storageProblems(settings),
  ]
}

function samePorts(settings: Settings): string[] {
  const options = portOptions(settings)
  const pairs = options.flatMap((a, i) => options.slice(i + 1).map((b) => [a, b] as const))
  return pairs
    .filter(([a, b]) => settings[a] === settings[b])
    .map(([a, b]) => `${a} and ${b} are both ${settings[a]}, expected different ports`)
}

function portsInRange(settings: Settings): string[] {
  const { from, to } = settings.redisPorts
  return portOptions(settings)
    .filter((name) => settings[name] >= from && settings[name] <= to)
    .map((name) => `${name} ${settings[name]} lies inside redisPorts ${from}-${to}, expected it outside`)
}

function exposure({ host, proxyTerminatesTls }: Settings): string[] {
  if (isLoopback(host) || proxyTerminatesTls) return []
  return [
    `host is ${host}, which others can reach, and nothing terminates TLS: put a TLS proxy in front and set ` +
      'proxyTerminatesTls to true, or keep host on 127.0.0.1',
  ]
}

function tlsProblems({ tlsCertFile, tlsKeyFile, redisDomain, proxyTerminatesTls }: Settings): string[] {
  const problems: string[] = []
  if ((tlsCertFile === undefined) !== (tlsKeyFile === undefined)) {
    const [given, missing] = tlsCertFile === undefined ? ['tlsKeyFile', 'tlsCertFile'] : ['tlsCertFile', 'tlsKeyFile']
    problems.push(`${given} is set and ${missing} is not, expected both or neither`)
  }
  if (redisDomain !== undefined && isIP(redisDomain) !== 0) {
    problems.push(`redisDomain is the address ${redisDomain}, expected a domain, since databases get names below it`)
  }
  if (redisDomain !== undefined && proxyTerminatesTls) {
    problems.push(
      `redisDomain is ${redisDomain} and proxyTerminatesTls is true: the names of databases are read from TLS, which ` +
        'then does not reach this server; let the proxy pass the connections of redisDomainPort through, or unset one',
    )
  }
  return problems
}

function storageProblems({ backups, backupTo, backupsEndpoint, backupsCredentialsFile }: Settings): string[] {
  if (backups !== undefined || (backupTo !== undefined && parseObjectPlace(backupTo))) return []
  const given = Object.entries({ backupsEndpoint, backupsCredentialsFile }).filter(([, value]) => value !== undefined)
  return given.map(
    ([name]) =>
      `${name} is set, and neither backups nor backupTo is a place such as s3://bucket/prefix: set one of them`,
  )
}

function nodeProblems({ node, store, advertise, host, processes }: Settings): string[] {
  if (node === undefined) {
    return [
      ...(advertise === undefined ? [] : ['advertise is set and node is not: name the node, or unset advertise']),
      ...(processes === 1
        ? []
        : [`processes is ${processes} and node is not set: name the node, or set processes to 1`]),
    ]
  }
  const problems: string[] = []
  if (store.kind === 'sqlite') {
    problems.push(`node is ${node} and store is sqlite: nodes share a PostgreSQL database, so set store to its URL`)
  }
  if (advertise === undefined && isWildcard(host)) {
    problems.push(`node is ${node} and host is ${host}: set advertise to the address that other nodes connect to`)
  }
  return problems
}
