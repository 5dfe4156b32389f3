import { type AwakeRecord, getAwake } from '../../contract/databases/awake.js'
import { remote } from '../remote/remote.js'
import { figure, fromNow } from '../terminal/figures.js'
import { DATABASE, databaseNamed } from './find.js'

/** `homeport db why-awake`. */
export const whyAwakeCommand = remote({
  name: 'why-awake',
  summary: 'say what keeps a database awake, or since when it sleeps; wakes nothing',
  args: [DATABASE],
  examples: ['homeport db why-awake shop', "homeport db why-awake shop --json | jq '.reasons'"],
  run: async ({ api, show }, _options, wanted) => {
    const { database_id: id } = await databaseNamed(api, wanted)
    const record = await api.call(getAwake, { params: { id } })
    show(record, () => sentences(record))
  },
})

type Kind = AwakeRecord['reasons'][number]['kind']

/** What a reason is called when there is one of it. */
const NAMES: Readonly<Record<Exclude<Kind, 'request'>, string>> = {
  creation: 'creation of the database',
  change: 'change of the database',
  backup: 'backup',
  restore: 'restore',
  import: 'import',
  blocking: 'client in a blocking command',
  subscription: 'client with a subscription',
  monitor: 'client that monitors',
  tracking: 'client that tracks keys',
  transaction: 'client in an open transaction',
}

const agoOf = (atSeconds: number): string => fromNow(atSeconds * 1000) ?? 'not since the server was started'

function sentences(record: AwakeRecord): string {
  const { awake, state, since, last_request, connections } = record
  const last = `Last request: ${agoOf(last_request)}. Open connections: ${connections}.`
  if (awake) return `Awake (${state}), woken ${agoOf(since)}.\n${reasonsOf(record)}${last}\n`
  const next =
    state === 'suspended' ? 'Requests are refused until it is not suspended any more.' : 'The next request wakes it.'
  return `Asleep (${state}) since ${agoOf(since)}. ${next}\n${last}\n`
}

function reasonsOf({ reasons, sleeps_at }: AwakeRecord): string {
  return reasons
    .map(({ kind, count }) =>
      kind === 'request'
        ? `Kept awake by its last use; falls asleep ${agoOf(sleeps_at)}.\n`
        : `Kept awake by ${figure(count)} x ${NAMES[kind]}.\n`,
    )
    .join('')
}
