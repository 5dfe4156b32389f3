import { charactersIn } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import {
  addUrlGroupEndpoints,
  deleteUrlGroup,
  getUrlGroup,
  listUrlGroups,
  removeUrlGroupEndpoints,
  setUrlGroupHeaders,
} from '../../contract/queue/groups.js'
import { MAX_ITEM_HEADER_BYTES } from '../../contract/request-limits.js'
import { type Route, route } from '../../http/index.js'
import type { Store } from '../../store/index.js'
import { batchesOf } from '../batches.js'
import { isValidHeader, titleCase } from '../headers.js'
import { parseHttpUrl, refuseForbidden, refuseForbiddenCallbacks } from '../publish/destination.js'
import { refuseSetting } from '../publish/setting-values.js'
import { NAME, readSettings } from '../publish/settings.js'
import * as urlGroups from '../transactions/url-groups.js'
import { endpointsOf, type GroupEndpoint, type UrlGroupRow } from '../transactions/url-groups.js'
import type { ApiDeps } from './deps.js'
import { longList, PAGE } from './long-list.js'

/**
 * Limits of a group. A publication to a group stores a message for each endpoint in one transaction, and each request
 * about a group reads or returns all its names and URLs.
 */
const LIMITS = { endpoints: 1_000, characters: 1_048_576 }

function checkName(what: string, name: string): void {
  if (!NAME.test(name)) refuseSetting(what, name, 'use letters, digits, - _ and . only')
}

function checkEndpoint({ name, url }: GroupEndpoint): void {
  if (name !== undefined) checkName('The name of an endpoint', name)
  const parsed = parseHttpUrl(url)
  if ('problem' in parsed) refuseSetting('The URL of an endpoint', url, parsed.problem)
}

/** An empty name counts as none. */
const endpointOf = ({ name, url }: { name?: string | undefined; url: string }): GroupEndpoint => ({
  ...(name ? { name } : {}),
  url,
})

function view(row: UrlGroupRow) {
  // This program wrote and validated the column.
  const headers = Object.entries(JSON.parse(row.headers) as Record<string, string>)
  return {
    name: row.name,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    endpoints: endpointsOf(row),
    ...(headers.length > 0 && {
      headers: Object.fromEntries(headers.map(([name, value]) => [titleCase(name), [value]])),
    }),
  }
}

/** Default headers with lower-case names, validated like those of a publication. */
function defaultHeaders(given: Readonly<Record<string, string | readonly string[]>>, deps: ApiDeps) {
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(given)) {
    const text = typeof value === 'string' ? value : value.join(', ')
    if (!isValidHeader(name, text)) refuseSetting(`The header ${name}`, text, 'send a valid HTTP header')
    headers[name.toLowerCase()] = text
  }
  const bytes = Object.entries(headers).reduce((sum, [name, text]) => sum + name.length + text.length, 0)
  if (bytes > MAX_ITEM_HEADER_BYTES) {
    const limit = `${MAX_ITEM_HEADER_BYTES} bytes`
    throw new HomeportError('setting_limit', { setting: 'The length of the headers', found: String(bytes), limit })
  }
  readSettings(headers, deps.clock.now(), deps.limits)
  refuseForbiddenCallbacks(headers, deps.targets)
  return JSON.stringify(headers)
}

/** Operations on the endpoints of a group. */
function memberRoutes({ store, clock, targets }: ApiDeps): Route[] {
  return [
    route(addUrlGroupEndpoints, async ({ caller: { accountId }, params: { name }, body }) => {
      checkName('The name of the URL group', name)
      // Sizes are checked before any URL is parsed.
      if (body.endpoints.length > LIMITS.endpoints) throw tooManyEndpoints(String(body.endpoints.length))
      const characters = charactersIn(body.endpoints)
      if (characters > LIMITS.characters) throw tooLongEndpoints(`${characters} characters`)
      const endpoints = body.endpoints.map(endpointOf)
      endpoints.forEach(checkEndpoint)
      for (const { url } of endpoints) refuseForbidden(url, targets)
      const args = { accountId, name, endpoints, most: LIMITS, now: clock.now() }
      const outcome = await store.run(urlGroups.addEndpoints, args)
      if (outcome === 'added') return {}
      throw outcome === 'full'
        ? tooManyEndpoints(`${endpoints.length} more`)
        : tooLongEndpoints(`${characters} characters more`)
    }),
    route(removeUrlGroupEndpoints, async ({ caller: { accountId }, params: { name }, body: { endpoints } }) => {
      const args = { accountId, name, endpoints, now: clock.now() }
      if (!(await store.run(urlGroups.removeEndpoints, args))) throw new HomeportError('url_group_not_found', { name })
      return {}
    }),
  ]
}

function tooManyEndpoints(found: string): HomeportError {
  const limit = `${LIMITS.endpoints} endpoints in a URL group`
  return new HomeportError('setting_limit', { setting: 'endpoints', found, limit })
}

function tooLongEndpoints(found: string): HomeportError {
  const limit = `${LIMITS.characters} characters of all names and URLs in a URL group`
  return new HomeportError('setting_limit', { setting: 'endpoints', found, limit })
}

/** All groups of an account, by name, in pages. */
async function* allGroups(store: Store, accountId: string): AsyncGenerator<ReturnType<typeof view>[]> {
  for (const page of batchesOf(await store.run(urlGroups.list, { accountId }), PAGE)) {
    const names = page.map(({ name }) => name)
    yield (await store.run(urlGroups.some, { accountId, names })).map(view)
  }
}

/** URL groups. */
export function groupRoutes(deps: ApiDeps): Route[] {
  const { store, clock } = deps
  return [
    ...memberRoutes(deps),
    route(listUrlGroups, ({ caller: { accountId } }) => longList(clock, allGroups(store, accountId))),
    route(getUrlGroup, async ({ caller: { accountId }, params: { name } }) => {
      const row = await store.run(urlGroups.get, { accountId, name })
      if (!row) throw new HomeportError('url_group_not_found', { name })
      return view(row)
    }),
    route(setUrlGroupHeaders, async ({ caller: { accountId }, params: { name }, body }) => {
      const args = { accountId, name, headers: defaultHeaders(body.headers, deps), now: clock.now() }
      if (!(await store.run(urlGroups.putHeaders, args))) throw new HomeportError('url_group_not_found', { name })
      return {}
    }),
    route(deleteUrlGroup, async ({ caller: { accountId }, params: { name } }) => {
      await store.run(urlGroups.remove, { accountId, name })
      return {}
    }),
  ]
}
