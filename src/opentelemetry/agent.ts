import { readFileSync } from 'node:fs'
import type { Agent as PlainAgent } from 'node:http'
import type { AgentOptions } from 'node:https'
import { TargetGate } from '../base/index.js'
import type { Environment, Signal } from './settings.js'

/** Looks names up for sockets. */
export type Lookup = NonNullable<AgentOptions['lookup']>

/** Reports a setting that is ignored, in one sentence. */
export type OnProblem = (problem: string) => void

/** The suffixes of the variables that name the files for TLS. */
const FILES = { ca: 'CERTIFICATE', cert: 'CLIENT_CERTIFICATE', key: 'CLIENT_KEY' } as const

/** Names are looked up like those of destinations: a silent name server must not block the threads for all look-ups. */
export const namesAsDestinations: Lookup = new TargetGate('everything').lookup

/** Makes the HTTP agent of an exporter. The SDK has no setting for look-ups, so this also reads its variables for TLS. */
export function agentOf(signal: Signal, environment: Environment, lookup: Lookup, onProblem: OnProblem) {
  const options: AgentOptions = { keepAlive: true, lookup, ...filesOf(signal, environment, onProblem) }
  return async (protocol: string): Promise<PlainAgent> => {
    const { Agent } = protocol === 'http:' ? await import('node:http') : await import('node:https')
    return new Agent(options)
  }
}

function filesOf(signal: Signal, environment: Environment, onProblem: OnProblem): AgentOptions {
  const files: AgentOptions = {}
  for (const [option, suffix] of Object.entries(FILES)) {
    const own = `OTEL_EXPORTER_OTLP_${signal}_${suffix}`
    const name = environment[own]?.trim() ? own : `OTEL_EXPORTER_OTLP_${suffix}`
    const path = environment[name]?.trim()
    if (!path) continue
    try {
      Object.assign(files, { [option]: readFileSync(path) })
    } catch {
      onProblem(`the file that ${name} names cannot be read, so it is not used.`)
    }
  }
  return files
}
