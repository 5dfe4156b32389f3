import { expect } from 'vitest'
import { commandHost, type RunningHomeport, type RunOptions, runHomeport } from '../support/index.js'

/** The built command with the credentials of the first account of a server, which may start later. */
export function signedIn(server: () => RunningHomeport) {
  const host = commandHost()
  const credentials = (): Readonly<Record<string, string>> => {
    const { apiUrl, queueUrl, credentials: own } = server()
    return {
      HOMEPORT_API_URL: apiUrl,
      HOMEPORT_EMAIL: own.email,
      HOMEPORT_API_KEY: own.apiKey,
      QSTASH_URL: queueUrl,
      QSTASH_TOKEN: own.queueToken,
    }
  }

  /** Runs a command in a process that it shares with others. */
  const cli = (args: readonly string[], options: RunOptions = {}) =>
    host(args, { ...options, env: { ...credentials(), ...options.env } })

  /** The same in a process of its own. */
  const cliAlone = (args: readonly string[], options: RunOptions = {}) =>
    runHomeport(args, { ...options, env: { ...credentials(), ...options.env } })

  /** Runs a command that must succeed; returns its stdout. */
  async function works(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await cli(args)
    expect([code, stderr]).toEqual([0, ''])
    return stdout
  }

  const json = async (...args: string[]) => JSON.parse(await works(...args, '--json'))

  return { credentials, cli, cliAlone, works, json }
}
