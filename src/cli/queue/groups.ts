import type { Static } from 'typebox'
import {
  addUrlGroupEndpoints,
  deleteUrlGroup,
  getUrlGroup,
  listUrlGroups,
  removeUrlGroupEndpoints,
} from '../../contract/queue/groups.js'
import { notFound } from '../errors.js'
import type { Io } from '../io.js'
import { group, remote } from '../remote/remote.js'
import { moment } from '../terminal/figures.js'
import { renderTable } from '../terminal/table.js'

type UrlGroup = Static<typeof getUrlGroup.success.body>
type Endpoint = UrlGroup['endpoints'][number]

const NAME = ['<group>', 'name of the URL group'] as const

const listCommand = remote({
  name: 'list',
  summary: 'list URL groups by name',
  examples: ['homeport queue groups list'],
  run: async ({ api, io, show }) => {
    const groups = await api.call(listUrlGroups)
    show(groups, () => (groups.length === 0 ? 'There are no URL groups.\n' : groupsTable(io, groups)))
  },
})

const groupsTable = (io: Io, rows: readonly UrlGroup[]): string =>
  renderTable(
    io,
    [
      { title: 'NAME', value: (one) => one.name },
      { title: 'ENDPOINTS', value: (one) => one.endpoints.length, align: 'right' },
      { title: 'CHANGED', value: (one) => moment(one.updatedAt) },
    ],
    rows,
  )

const endpointsTable = (io: Io, rows: readonly Endpoint[]): string =>
  renderTable(
    io,
    [
      { title: 'NAME', value: (one) => one.name },
      { title: 'URL', cuts: true, value: (one) => one.url },
    ],
    rows,
  )

const getCommand = remote({
  name: 'get',
  summary: 'show the endpoints of a URL group',
  args: [NAME],
  examples: ['homeport queue groups get news'],
  run: async ({ api, io, show }, _, name) => {
    const found = await api.call(getUrlGroup, { params: { name } })
    show(found, () => endpointsTable(io, found.endpoints))
  },
})

const addCommand = remote<object, [string, string[]]>({
  name: 'add',
  summary: 'add endpoints to a URL group; creates the group if needed',
  args: [NAME, ['<endpoints...>', 'URLs, or name=URL']],
  examples: ['homeport queue groups add news https://a.test backup=https://b.test'],
  run: async ({ api, io, show }, _, name, endpoints) => {
    await api.call(addUrlGroupEndpoints, { params: { name }, body: { endpoints: endpoints.map(endpointOf) } })
    const found = await api.call(getUrlGroup, { params: { name } })
    show(found, () => endpointsTable(io, found.endpoints))
  },
})

/** `name=https://…` has a name; `https://…?a=b` has none. */
function endpointOf(text: string): Endpoint {
  const named = /^([\w.-]+)=(.+)$/.exec(text)
  return named?.[1] !== undefined && named[2] !== undefined ? { name: named[1], url: named[2] } : { url: text }
}

const removeCommand = remote<object, [string, string[]]>({
  name: 'remove',
  summary: 'remove endpoints from a URL group; a group without endpoints is deleted',
  args: [NAME, ['<endpoints...>', 'names or URLs of endpoints']],
  examples: ['homeport queue groups remove news backup'],
  run: async ({ api, io, show }, _, name, endpoints) => {
    const { endpoints: before } = await api.call(getUrlGroup, { params: { name } })
    const unknown = endpoints.find((wanted) => !before.some((one) => one.url === wanted || one.name === wanted))
    if (unknown !== undefined) {
      const problem = `The URL group "${name}" has no endpoint "${unknown}". See: homeport queue groups get ${name}.`
      throw notFound(problem)
    }
    const named = endpoints.map((one) => (one.includes('://') ? { url: one } : { name: one }))
    const answer = await api.call(removeUrlGroupEndpoints, { params: { name }, body: { endpoints: named } })
    const left = before.filter((one) => !endpoints.some((wanted) => one.url === wanted || one.name === wanted))
    show(answer, () => (left.length > 0 ? endpointsTable(io, left) : `deleted ${name}, which has no endpoints left\n`))
  },
})

const deleteCommand = remote({
  name: 'delete',
  summary: 'delete a URL group; messages already published to it are still delivered',
  args: [NAME],
  isDestructive: true,
  examples: ['homeport queue groups delete news --yes'],
  run: async ({ api, show, confirm }, _, name) => {
    await confirm(`Delete the URL group "${name}"?`)
    const answer = await api.call(deleteUrlGroup, { params: { name } })
    show(answer, () => `deleted ${name}\n`)
  },
})

/** `homeport queue groups`. */
export const groupsCommand = group('groups', 'URL groups: a message goes to each endpoint', [
  listCommand,
  getCommand,
  addCommand,
  removeCommand,
  deleteCommand,
])
