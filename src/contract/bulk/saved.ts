import Type from 'typebox'
import { endpoint } from '../endpoint.js'
import { shared } from './actions.js'
import { SELECTING_KINDS } from './selectors.js'

/** The wire of selectors that are saved under a name. */

/** Most saved selectors of an account. */
export const MAX_SAVED_SELECTORS = 200
/** Most characters of the JSON of a saved selector. */
export const MAX_SAVED_SELECTOR_LENGTH = 16_384

const params = Type.Object({
  name: Type.String({
    pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$',
    description: 'Name of the selector: 1 to 64 letters, digits, dots, hyphens and underscores.',
  }),
})

const fields = {
  kind: Type.Enum([...SELECTING_KINDS], {
    description:
      'A kind of bulk action that accepts the selector. Other kinds with the same type of items accept it too.',
  }),
  selector: Type.Record(Type.String(), Type.Unknown(), { description: 'As in `POST /v2/workflows/bulkActions`.' }),
}

/** A saved selector. */
export const SavedSelector = Type.Object({
  name: Type.String(),
  ...fields,
  savedBy: Type.String({ description: 'E-mail of the account that saved it last.' }),
  savedAt: Type.Integer({ description: 'When it was saved last, Unix milliseconds.' }),
})

const storeErrors = ['store_full', 'store_unavailable'] as const

/** Saves a selector. */
export const saveSelector = endpoint({
  ...shared,
  id: 'saveSelector',
  method: 'PUT',
  path: '/v2/workflows/bulkSelectors/{name}',
  access: 'write',
  scopes: [],
  summary: 'Save a selector under a name',
  description: `Saves the selector of a bulk action, or replaces the saved one. Use it as \`"selector": {"saved": "<name>"}\`. An action stores the fields of the selector, so later changes do not affect it. An account may have ${MAX_SAVED_SELECTORS} saved selectors.`,
  params,
  body: {
    kind: 'json',
    schema: Type.Object(fields, {
      additionalProperties: false,
      examples: [{ kind: 'cancelRuns', selector: { label: 'nightly', state: 'retry' } }],
    }),
  },
  success: { status: 200, description: 'The saved selector.', body: SavedSelector },
  errors: ['invalid_request', 'invalid_json', ...storeErrors],
})

/** Lists saved selectors. */
export const listSelectors = endpoint({
  ...shared,
  id: 'listSelectors',
  method: 'GET',
  path: '/v2/workflows/bulkSelectors',
  access: 'read',
  cost: 'heavy',
  scopes: ['read'],
  summary: 'List saved selectors',
  description: 'All saved selectors of the account, by name.',
  body: { kind: 'none' },
  success: { status: 200, description: 'The selectors.', body: Type.Object({ selectors: Type.Array(SavedSelector) }) },
  errors: [],
})

/** Shows a saved selector. */
export const getSelector = endpoint({
  ...shared,
  id: 'getSelector',
  method: 'GET',
  path: '/v2/workflows/bulkSelectors/{name}',
  access: 'read',
  scopes: ['read'],
  summary: 'Show a saved selector',
  description: 'The selector as it was saved.',
  params,
  body: { kind: 'none' },
  success: { status: 200, description: 'The selector.', body: SavedSelector },
  errors: ['saved_selector_not_found'],
})

/** Deletes a saved selector. */
export const deleteSelector = endpoint({
  ...shared,
  id: 'deleteSelector',
  method: 'DELETE',
  path: '/v2/workflows/bulkSelectors/{name}',
  access: 'write',
  scopes: [],
  summary: 'Delete a saved selector',
  description: 'Actions that used it keep its fields and continue.',
  params,
  body: { kind: 'none' },
  success: { status: 200, description: 'The deleted selector.', body: SavedSelector },
  errors: ['saved_selector_not_found', ...storeErrors],
})
