import Type from 'typebox'
import { endpoint } from '../endpoint.js'
import { MOST_ITEM_HEADERS } from '../request-limits.js'

/** URL groups: one publication goes to every endpoint of the group. On the wire they are called topics. */

const queue = { service: 'queue', topic: 'URL groups', auth: 'bearer' } as const
const params = Type.Object({ name: Type.String({ description: 'Name of the group: letters, digits, - _ and .' }) })

/** A member of a group. */
const Endpoint = Type.Object({
  name: Type.Optional(Type.String({ description: 'A name for the endpoint, unique in its group.' })),
  url: Type.String({ description: 'Where the endpoint is.' }),
})

/** A URL group. */
const UrlGroup = Type.Object({
  name: Type.String(),
  createdAt: Type.Integer({ description: 'Unix milliseconds.' }),
  updatedAt: Type.Integer({ description: 'Unix milliseconds.' }),
  endpoints: Type.Array(Endpoint),
  headers: Type.Optional(
    Type.Record(Type.String(), Type.Array(Type.String()), {
      description: 'Default headers of publications; absent when there are none.',
    }),
  ),
})

const Done = Type.Object({})

/** Add endpoints. */
export const addUrlGroupEndpoints = endpoint({
  ...queue,
  id: 'addUrlGroupEndpoints',
  method: 'POST',
  path: '/v2/topics/{name}/endpoints',
  access: 'write',
  summary: 'Add endpoints to a URL group',
  description:
    'Makes the group when there is none. An endpoint with a name or a URL that the group has already takes the place of ' +
    'that one.',
  params,
  body: { kind: 'json', schema: Type.Object({ endpoints: Type.Array(Endpoint, { minItems: 1 }) }) },
  success: { status: 200, description: 'The endpoints are members.', body: Done },
  errors: ['invalid_request', 'setting_limit', 'destination_forbidden'],
})

/** Remove endpoints. */
export const removeUrlGroupEndpoints = endpoint({
  ...queue,
  id: 'removeUrlGroupEndpoints',
  method: 'DELETE',
  path: '/v2/topics/{name}/endpoints',
  access: 'write',
  summary: 'Remove endpoints from a URL group',
  description: 'An endpoint is named by its name or its URL. A group without endpoints is deleted.',
  params,
  body: {
    kind: 'json',
    schema: Type.Object({
      endpoints: Type.Array(Type.Object({ name: Type.Optional(Type.String()), url: Type.Optional(Type.String()) }), {
        minItems: 1,
      }),
    }),
  },
  success: { status: 200, description: 'The endpoints are no members any more.', body: Done },
  errors: ['url_group_not_found', 'invalid_request'],
})

/** List groups. */
export const listUrlGroups = endpoint({
  ...queue,
  id: 'listUrlGroups',
  method: 'GET',
  path: '/v2/topics',
  access: 'read',
  summary: 'List URL groups',
  description: 'All URL groups of the account, by name.',
  body: { kind: 'none' },
  success: { status: 200, description: 'The groups.', body: Type.Array(UrlGroup) },
  errors: [],
})

/** Read a group. */
export const getUrlGroup = endpoint({
  ...queue,
  id: 'getUrlGroup',
  method: 'GET',
  path: '/v2/topics/{name}',
  access: 'read',
  summary: 'Read a URL group',
  description: 'Shows the endpoints of a group and its default headers.',
  params,
  body: { kind: 'none' },
  success: { status: 200, description: 'The group.', body: UrlGroup },
  errors: ['url_group_not_found'],
})

/** Set the default headers of a group. */
export const setUrlGroupHeaders = endpoint({
  ...queue,
  id: 'setUrlGroupHeaders',
  method: 'PATCH',
  path: '/v2/topics/{name}',
  access: 'write',
  summary: 'Set the default headers of a URL group',
  description:
    'The headers stand for those that a publication to the group does not say itself, such as `Upstash-Retries`. They ' +
    'replace the default headers that the group had.',
  params,
  body: {
    kind: 'json',
    schema: Type.Object({
      headers: Type.Record(Type.String(), Type.Union([Type.String(), Type.Array(Type.String())]), {
        maxProperties: MOST_ITEM_HEADERS,
      }),
    }),
  },
  success: { status: 200, description: 'The headers are set.', body: Done },
  errors: ['url_group_not_found', 'invalid_request', 'setting_limit', 'destination_forbidden'],
})

/** Delete a group. */
export const deleteUrlGroup = endpoint({
  ...queue,
  id: 'deleteUrlGroup',
  method: 'DELETE',
  path: '/v2/topics/{name}',
  access: 'write',
  summary: 'Delete a URL group',
  description: 'Messages that were published to it are delivered all the same. A group that is not there is no error.',
  params,
  body: { kind: 'none' },
  success: { status: 200, description: 'There is no such group any more.', body: Done },
  errors: [],
})
