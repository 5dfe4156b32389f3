import { recoverDatabase } from '../../contract/databases/recovery.js'
import { remote } from '../remote/remote.js'
import { momentOfSeconds } from '../terminal/figures.js'
import { DATABASE, databaseNamed } from './find.js'

/** `homeport db recover`: recreates a database whose node is gone at another node. */
export const recoverCommand = remote<{ from?: string; node?: string }>({
  name: 'recover',
  summary: 'recreate a database whose node is gone on a live node, from a backup in object storage',
  args: [DATABASE],
  flags: (command) =>
    command
      .option('--from <backup>', 'id of the backup (default: the newest one in object storage)')
      .option('--node <name>', 'the node that serves it from then on (default: the one that answers)'),
  isDestructive: true,
  examples: ['homeport db recover 3f2a9c1e-1b2c --from bak_1b2c --node b'],
  run: async ({ api, show, say, confirm }, { from, node }, wanted) => {
    const { database_id: id, database_name: name } = await databaseNamed(api, wanted)
    const which = from === undefined ? 'its newest backup in object storage' : `the backup ${from}`
    const lost = 'Everything that was written after the backup is lost.'
    await confirm(`Serve ${which} as "${name}" (${id})? ${lost}`)
    say('downloading and verifying the backup ...')
    const body = { ...(from !== undefined && { backup_id: from }), ...(node !== undefined && { node }) }
    const done = await api.call(recoverDatabase, { params: { id }, body })
    const at = done.node === '' ? 'this server' : `node ${done.node}`
    const age = `its data is of ${momentOfSeconds(done.data_time)}, ${done.age_seconds} seconds old`
    show(done, () => `${name} is served by ${at} from ${done.backup_id}: ${age}\n`)
  },
})
