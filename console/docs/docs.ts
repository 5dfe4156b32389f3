/**
 * The script of the page `/docs`: Swagger UI with the description that the same listener serves. It connects to that
 * listener only. Credentials stay in the memory of the page.
 */

interface Operation {
  readonly path: string
  readonly method: string
  readonly operation: {
    get(name: 'operationId' | 'summary' | 'description'): string | undefined
    get(name: 'parameters'): Iterable<{ get(name: 'name'): string | undefined }> | undefined
  }
}

/** An immutable map, as far as this page uses one. */
interface ImmutableMap<Value> {
  map(change: (value: Value) => Value): ImmutableMap<Value>
  filter(keeps: (value: Value) => boolean): ImmutableMap<Value>
  get(name: string): unknown
  set(name: string, value: unknown): ImmutableMap<Value>
}

interface Tag {
  get(name: 'operations'): OperationList
  set(name: 'operations', value: OperationList): Tag
}

interface OperationList {
  readonly size: number
  filter(keeps: (operation: { toObject(): Operation }) => boolean): OperationList
}

type Tags = ImmutableMap<Tag>

interface FilterProps {
  readonly layoutSelectors: { currentFilter(): string | boolean | null }
  readonly layoutActions: { updateFilter(text: string): void }
}

interface System {
  readonly React: { createElement(type: string, props: object | null, ...children: unknown[]): unknown }
}

declare const SwaggerUIBundle: (options: object) => void

/** Where the listener is for this browser, also behind a proxy with a path of its own. */
const base = new URL('.', document.baseURI).href.replace(/\/$/, '')

const textOf = ({ path, method, operation }: Operation): string => {
  const names = [...(operation.get('parameters') ?? [])].map((parameter) => parameter.get('name'))
  const texts = [operation.get('operationId'), operation.get('summary'), operation.get('description'), ...names]
  return [method, path, ...texts].join('\n').toLowerCase()
}

/** The operations whose texts contain every word of a search. */
function found(tags: Tags, search: string): Tags {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean)
  const matches = (operation: { toObject(): Operation }) => {
    const text = textOf(operation.toObject())
    return words.every((word) => text.includes(word))
  }
  return tags
    .map((tag) => tag.set('operations', tag.get('operations').filter(matches)))
    .filter((tag) => tag.get('operations').size > 0)
}

const partAt = (whole: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>((part, name) => (part as Readonly<Record<string, unknown>> | undefined)?.[name], whole)

/** A copy of a part with the components themselves instead of references to them. Components refer to no others. */
function withComponents(part: unknown, whole: unknown): unknown {
  if (typeof part !== 'object' || part === null) return part
  if (Array.isArray(part)) return part.map((each) => withComponents(each, whole))
  if ('$ref' in part && typeof part.$ref === 'string') return partAt(whole, part.$ref.split('/').slice(1))
  return Object.fromEntries(Object.entries(part).map(([name, value]) => [name, withComponents(value, whole)]))
}

/**
 * Resolves the references in a part of the description, such as an operation that the user opens. The resolver of Swagger UI
 * resolves the whole description each time, which takes most of the time of the page.
 */
const resolveSubtree = async (whole: unknown, path: readonly string[]) => ({
  spec: withComponents(partAt(whole, path), whole),
  errors: [],
})

/** The search field: the one of Swagger UI has no label and finds only topics. */
const searchField =
  (_original: unknown, { React }: System) =>
  ({ layoutSelectors, layoutActions }: FilterProps) => {
    const current = layoutSelectors.currentFilter()
    return React.createElement(
      'div',
      { className: 'wrapper search', role: 'search' },
      React.createElement('input', {
        type: 'search',
        'aria-label': 'Search operations',
        placeholder: 'Search operations: words, paths, parameters',
        value: typeof current === 'string' && current !== 'true' ? current : '',
        onChange: (event: { target: { value: string } }) => layoutActions.updateFilter(event.target.value),
      }),
    )
  }

function followColorScheme(): void {
  const dark = matchMedia('(prefers-color-scheme: dark)')
  const apply = () => document.documentElement.classList.toggle('dark-mode', dark.matches)
  dark.addEventListener('change', apply)
  apply()
}

async function show(): Promise<void> {
  const response = await fetch(`${base}/openapi.json`)
  const described: object = await response.json()
  // Requests go to the address that the browser used for this page: another name of this server is another origin.
  const spec = { ...described, servers: [{ url: base, description: 'This server' }] }
  SwaggerUIBundle({
    spec,
    dom_id: '#reference',
    deepLinking: true,
    docExpansion: 'list',
    defaultModelsExpandDepth: -1,
    displayOperationId: true,
    filter: true,
    validatorUrl: null,
    plugins: [{ fn: { opsFilter: found, resolveSubtree }, wrapComponents: { FilterContainer: searchField } }],
  })
}

followColorScheme()
show().catch((error: unknown) => {
  const place = document.getElementById('reference')
  if (place) place.textContent = `The description of the API could not be loaded: ${String(error)}`
})
