import { type AwakeRecord, getAwake } from '../../contract/databases/awake.js'
import { remote } from '../remote/remote.js'
import { figure, momentFromNow } from '../terminal/figures.js'
import { DATABASE, databaseNamed } from './find.js'

/** `homeport db why-awake`. */
export const whyAwakeCommand = remote({
  name: 'why-awake',
  summary: 'show what keeps a database awake, or since when it is asleep; does not wake it',
  args: [DATABASE],
  examples: ['homeport db why-awake shop', "homeport db why-awake shop --json | jq '.reasons'"],
  run: async ({ api, show }, _options, wanted) => {
    const { database_id: id } = await databaseNamed(api, wanted)
    const record = await api.call(getAwake, { params: { id } })
    show(record, () => sentences(record))
  },
})

type Kind = AwakeRecord['reasons'][number]['kind']

/** A reason in words, for one and for several. */
const NAMES: Readonly<Record<Exclude<Kind, 'request'>, readonly [one: string, many: string]>> = {
  creation: ['creation of the database', 'creations of the database'],
  change: ['change of the database', 'changes of the database'],
  backup: ['backup', 'backups'],
  restore: ['restore', 'restores'],
  import: ['import', 'imports'],
  blocking: ['client in a blocking command', 'clients in blocking commands'],
  subscription: ['client with a subscription', 'clients with subscriptions'],
  monitor: ['client with MONITOR', 'clients with MONITOR'],
  tracking: ['client that tracks keys', 'clients that track keys'],
  transaction: ['client in an open transaction', 'clients in open transactions'],
}

const whenOf = (atSeconds: number): string => momentFromNow(atSeconds * 1000) ?? 'none since the server started'

function sentences(record: AwakeRecord): string {
  const { awake, state, since, last_request, connections } = record
  const last = `Last request: ${whenOf(last_request)}. Open connections: ${connections}.`
  if (awake) return `Awake, woken ${whenOf(since)}.\n${reasonsOf(record)}${last}\n`
  const next = state === 'suspended' ? 'Requests are refused while it is suspended.' : 'The next request wakes it.'
  return `${state === 'suspended' ? 'Suspended and asleep' : 'Asleep'} since ${whenOf(since)}. ${next}\n${last}\n`
}

function reasonsOf({ reasons, sleeps_at }: AwakeRecord): string {
  return reasons
    .map(({ kind, count }) =>
      kind === 'request'
        ? `Kept awake by its last request; falls asleep ${whenOf(sleeps_at)}.\n`
        : `Kept awake by ${figure(count)} ${NAMES[kind][count === 1 ? 0 : 1]}.\n`,
    )
    .join('')
}
