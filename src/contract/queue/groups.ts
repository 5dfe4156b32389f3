import Type from 'typebox'
import { endpoint } from '../endpoint.js'
import { MAX_ITEM_HEADERS } from '../request-limits.js'

/** URL groups: a message to a group goes to each of its endpoints. The wire calls them topics. */

const queue = { service: 'queue', topic: 'URL groups', auth: 'bearer' } as const
const params = Type.Object({ name: Type.String({ description: 'Name of the group: letters, digits, - _ and .' }) })

/** An endpoint of a group. */
const Endpoint = Type.Object({
  name: Type.Optional(Type.String({ description: 'A name for the endpoint, unique in its group.' })),
  url: Type.String({ description: 'URL of the endpoint.' }),
})

/** A URL group. */
const UrlGroup = Type.Object({
  name: Type.String(),
  createdAt: Type.Integer({ description: 'Unix milliseconds.' }),
  updatedAt: Type.Integer({ description: 'Unix milliseconds.' }),
  endpoints: Type.Array(Endpoint),
  headers: Type.Optional(
    Type.Record(Type.String(), Type.Array(Type.String()), {
      description: 'Default headers of messages to the group. Absent when there are none.',
    }),
  ),
})

const Done = Type.Object({})

/** Adds endpoints to a group. */
export const addUrlGroupEndpoints = endpoint({
  ...queue,
  id: 'addUrlGroupEndpoints',
  method: 'POST',
  path: '/v2/topics/{name}/endpoints',
  access: 'write',
  scopes: [],
  summary: 'Add endpoints to a URL group',
  description:
    'Creates the group if it does not exist. An endpoint replaces the endpoint of the group that has the same name or URL.',
  params,
  body: { kind: 'json', schema: Type.Object({ endpoints: Type.Array(Endpoint, { minItems: 1 }) }) },
  success: { status: 200, description: 'The endpoints are in the group.', body: Done },
  errors: ['invalid_request', 'setting_limit', 'destination_forbidden'],
})

/** Removes endpoints from a group. */
export const removeUrlGroupEndpoints = endpoint({
  ...queue,
  id: 'removeUrlGroupEndpoints',
  method: 'DELETE',
  path: '/v2/topics/{name}/endpoints',
  access: 'write',
  scopes: [],
  summary: 'Remove endpoints from a URL group',
  description: 'Name each endpoint by its name or its URL. A group without endpoints is deleted.',
  params,
  body: {
    kind: 'json',
    schema: Type.Object({
      endpoints: Type.Array(Type.Object({ name: Type.Optional(Type.String()), url: Type.Optional(Type.String()) }), {
        minItems: 1,
      }),
    }),
  },
  success: { status: 200, description: 'The endpoints are removed.', body: Done },
  errors: ['url_group_not_found', 'invalid_request'],
})

/** Lists groups. */
export const listUrlGroups = endpoint({
  ...queue,
  id: 'listUrlGroups',
  method: 'GET',
  path: '/v2/topics',
  access: 'read',
  cost: 'heavy',
  scopes: ['read'],
  summary: 'List URL groups',
  description: 'All URL groups of the account, by name.',
  body: { kind: 'none' },
  success: { status: 200, description: 'The groups.', body: Type.Array(UrlGroup) },
  errors: [],
})

/** Reads a group. */
export const getUrlGroup = endpoint({
  ...queue,
  id: 'getUrlGroup',
  method: 'GET',
  path: '/v2/topics/{name}',
  access: 'read',
  cost: 'heavy',
  scopes: ['read'],
  summary: 'Read a URL group',
  description: 'Shows the endpoints of a group and its default headers.',
  params,
  body: { kind: 'none' },
  success: { status: 200, description: 'The group.', body: UrlGroup },
  errors: ['url_group_not_found'],
})

/** Sets the default headers of a group. */
export const setUrlGroupHeaders = endpoint({
  ...queue,
  id: 'setUrlGroupHeaders',
  method: 'PATCH',
  path: '/v2/topics/{name}',
  access: 'write',
  scopes: [],
  summary: 'Set the default headers of a URL group',
  description:
    'A message to the group gets these headers, such as `Upstash-Retries`, unless its request sends them itself. They replace the previous default headers.',
  params,
  body: {
    kind: 'json',
    schema: Type.Object({
      headers: Type.Record(Type.String(), Type.Union([Type.String(), Type.Array(Type.String())]), {
        maxProperties: MAX_ITEM_HEADERS,
      }),
    }),
  },
  success: { status: 200, description: 'The headers are set.', body: Done },
  errors: ['url_group_not_found', 'invalid_request', 'setting_limit', 'destination_forbidden'],
})

/** Deletes a group. */
export const deleteUrlGroup = endpoint({
  ...queue,
  id: 'deleteUrlGroup',
  method: 'DELETE',
  path: '/v2/topics/{name}',
  access: 'write',
  scopes: [],
  summary: 'Delete a URL group',
  description:
    'Messages already published to the group are still delivered. Deleting a group that does not exist is not an error.',
  params,
  body: { kind: 'none' },
  success: { status: 200, description: 'The group does not exist any more.', body: Done },
  errors: [],
})
