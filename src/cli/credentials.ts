import { Command } from 'commander'
import { type Credentials, credentialsPath } from '../accounts/credentials.js'
import { systemClock } from '../base/index.js'
import { type Config, inspectDataDir, keepFilesPrivate, lockDataDir } from '../config/index.js'
import type { HomeportError } from '../contract/errors/errors.js'
import { notFound } from './errors.js'
import { DONE, type ExitCode } from './exit-codes.js'
import { addConfigFlags, configOf } from './flags.js'
import type { Io } from './io.js'
import { addExamples, type CommandMaker, group } from './remote/remote.js'
import { confirm } from './terminal/ask.js'

interface ResetOptions {
  readonly allKeys: boolean
  readonly yes: boolean
}

const QUESTION =
  'Create a new API key and a new queue token for the first account? Programs with the old ones are refused from then on.'

/** `homeport credentials reset`: for an operator who has the data directory but lost the credentials. */
const resetCommand: CommandMaker = (io: Io, end: (code: ExitCode) => void): Command => {
  const command = new Command('reset')
    .description('create a new API key and queue token when they are lost or leaked; the server must be stopped')
    .option('--all-keys', 'delete all API keys of the account, not only the key named default', false)
    .option('-y, --yes', 'do not ask for confirmation', false)
  addExamples(command, ['homeport credentials reset', 'homeport credentials reset --all-keys --yes && homeport env'])
  return addConfigFlags(command, ['dataDir', 'store']).action(async () => {
    const { allKeys, yes } = command.opts<ResetOptions>()
    const config = configOf(command)
    if (inspectDataDir(config.dataDir).state === 'missing') throw missing(config.dataDir)
    await confirm(io, { question: QUESTION, isGiven: yes })
    const { email } = await reset(config, allKeys)
    const path = credentialsPath(config.dataDir)
    io.out(`${email} has a new API key and a new queue token, stored in ${path}. \`homeport env\` prints them.\n`)
    end(DONE)
  })
}

/** Replaces the credentials. It locks the data directory, so that no server runs on it meanwhile. */
async function reset(config: Config, endsOtherKeys: boolean): Promise<Credentials> {
  // Imported here, because loading the server's modules takes a quarter of a second and the help loads this file too.
  const [{ resetCredentials }, { openStore }] = await Promise.all([
    import('../accounts/index.js'),
    import('../store/index.js'),
  ])
  const { dataDir, store: choice } = config
  keepFilesPrivate()
  const lock = lockDataDir(dataDir)
  try {
    const location = choice.kind === 'sqlite' ? 'sqlite' : choice.url
    const store = await openStore({ location, dataDir, onFailure: () => undefined })
    try {
      return await resetCredentials({ store, dataDir, clock: systemClock, endsOtherKeys })
    } finally {
      await store.close()
    }
  } finally {
    lock.release()
  }
}

function missing(dataDir: string): HomeportError {
  const problem = `There is no data directory ${dataDir}. Set the one of the server with --data-dir.`
  return notFound(problem)
}

/** `homeport credentials`. */
export const credentialsCommand = group('credentials', 'the credentials of the first account', [resetCommand])
