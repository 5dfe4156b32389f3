import { isLoopback } from './hosts.js'
import type { Settings } from './options.js'

const PORT_OPTIONS = ['apiPort', 'restPort', 'queuePort'] as const

/** What is wrong between options that are each fine alone: one sentence per problem, naming both sides. */
export function relationProblems(settings: Settings): string[] {
  return [...samePorts(settings), ...portsInRange(settings), ...exposure(settings)]
}

function samePorts(settings: Settings): string[] {
  const pairs = PORT_OPTIONS.flatMap((a, i) => PORT_OPTIONS.slice(i + 1).map((b) => [a, b] as const))
  return pairs
    .filter(([a, b]) => settings[a] === settings[b])
    .map(([a, b]) => `${a} and ${b} are both ${settings[a]}, expected a port of its own for each`)
}

function portsInRange(settings: Settings): string[] {
  const { from, to } = settings.redisPorts
  return PORT_OPTIONS.filter((name) => settings[name] >= from && settings[name] <= to).map(
    (name) => `${name} ${settings[name]} lies inside redisPorts ${from}-${to}, expected it outside`,
  )
}

function exposure({ host, proxyTerminatesTls }: Settings): string[] {
  if (isLoopback(host) || proxyTerminatesTls) return []
  return [
    `host is ${host}, which others can reach, and nothing terminates TLS: put a TLS proxy in front and set ` +
      'proxyTerminatesTls to true, or keep host on 127.0.0.1',
  ]
}
