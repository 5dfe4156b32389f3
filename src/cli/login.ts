import { Command } from 'commander'
import { Value } from 'typebox/value'
import { tryParseJson } from '../base/index.js'
import { listDatabases } from '../contract/databases/databases.js'
import { isError } from '../contract/errors/errors.js'
import { getSigningKeys } from '../contract/queue/messages.js'
import { misused } from './errors.js'
import { DONE, type ExitCode } from './exit-codes.js'
import type { Io, Terminal } from './io.js'
import { Api } from './remote/api.js'
import {
  checkProfileName,
  type Profile,
  ProfileSchema,
  profilesPath,
  readProfiles,
  writeProfiles,
} from './remote/profiles.js'
import { addExamples } from './remote/remote.js'
import { ask, askSecret, readInput } from './terminal/ask.js'

interface LoginOptions {
  readonly name: string
  readonly verify: boolean
}

/** `homeport login`: saves the credentials of a server as a profile and makes it the current one. */
export function loginCommand(io: Io, end: (code: ExitCode) => void): Command {
  const command = new Command('login')
    .description(
      'save the credentials of a server as a profile, and use it from now on. Asks for them on a terminal; otherwise ' +
        'reads the output of `homeport env --json` on that server from the standard input',
    )
    .option('--name <name>', 'name of the profile', 'default')
    .option('--no-verify', 'do not check the credentials with the server')
  addExamples(command, ['homeport login --name prod', 'ssh prod homeport env --json | homeport login --name prod'])
  return command.action(async () => {
    const { name, verify } = command.opts<LoginOptions>()
    checkProfileName(name)
    const profile = io.terminal?.asks ? await askProfile(io.terminal) : readProfile(await readInput(io))
    if (verify) await check(name, profile)
    const all = await readProfiles()
    await writeProfiles({ current: name, profiles: { ...all.profiles, [name]: profile } })
    io.out(`profile "${name}" (${profile.apiUrl}) is saved in ${profilesPath()} and used from now on\n`)
    end(DONE)
  })
}

async function askProfile(terminal: Terminal): Promise<Profile> {
  const apiUrl = await ask(terminal, 'URL of the management API: ')
  const email = await ask(terminal, 'E-mail: ')
  const apiKey = await askSecret(terminal, 'API key (not shown): ')
  const queueUrl = await ask(terminal, 'URL of the queue service (empty: none): ')
  const queueToken = queueUrl === '' ? '' : await askSecret(terminal, 'Queue token (not shown): ')
  const profile = { apiUrl, email, apiKey, ...(queueUrl !== '' && { queueUrl, queueToken }) }
  if (Value.Check(ProfileSchema, profile)) return profile
  throw misused('An answer is missing. Nothing was saved.')
}

function readProfile(input: Buffer): Profile {
  const value = tryParseJson(input.toString('utf8'))
  if (!Value.Check(ProfileSchema, value)) {
    const problem =
      'The standard input must be the output of `homeport env --json`: a JSON object with apiUrl, email, apiKey, queueUrl and queueToken.'
    throw misused(problem)
  }
  const { apiUrl, email, apiKey, queueUrl, queueToken } = value
  return { apiUrl, email, apiKey, ...(queueUrl && queueToken && { queueUrl, queueToken }) }
}

/** Checks the credentials with the server before the profile is saved. */
async function check(name: string, profile: Profile): Promise<void> {
  const api = new Api({ origin: `profile "${name}"`, profile })
  await api.call(listDatabases, { query: { credentials: 'hide' } })
  if (profile.queueUrl !== undefined) await api.call(getSigningKeys).catch(ignoreForbidden)
}

/** Ignores a 403: a token with a narrow scope is valid, although it may not read the signing keys. */
function ignoreForbidden(error: unknown): void {
  if (!isError(error, 'server_refused') || error.details.status !== 403) throw error
}
