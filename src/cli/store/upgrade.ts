import { Command } from 'commander'
import { VERSION } from '../../base/index.js'
import { describeStore } from '../../config/index.js'
import { notFound } from '../errors.js'
import { DONE } from '../exit-codes.js'
import { addFlags, configOf } from '../flags.js'
import { addExamples, type CommandMaker } from '../remote/remote.js'
import { withStoppedServer } from './locked.js'

/** `homeport store upgrade`: migrates the store as the first start of a new version does, without starting a server. */
export const upgradeStoreCommand: CommandMaker = (io, end) => {
  const command = new Command('upgrade').description(
    'bring the schema of the store to this version, as the next start would; the server must be stopped',
  )
  addExamples(command, ['homeport store upgrade', 'HOMEPORT_STORE=postgres://… homeport store upgrade'])
  return addFlags(command, ['dataDir', 'store']).action(async () => {
    const config = configOf(command)
    const { store, dataDir } = config
    await withStoppedServer(config, 'must exist', async () => {
      const { hasSqliteStore, openStore } = await import('../../store/index.js')
      if (store.kind === 'sqlite' && !(await hasSqliteStore(dataDir))) {
        throw notFound(`There is no store in ${dataDir}. Set --data-dir or --store.`)
      }
      const location = store.kind === 'sqlite' ? 'sqlite' : store.url
      await (await openStore({ location, dataDir, onFailure: () => undefined })).close()
    })
    io.out(`The store (${describeStore(store)}) has the schema of Homeport ${VERSION}.\n`)
    end(DONE)
  })
}
