import { type ESTree, type Plugin, parseSync, Visitor } from 'vite'

/** What the browser needs of a declared endpoint: enough to send the request. */
const OF_ENDPOINT = new Set(['id', 'method', 'path', 'body', 'kind'])
/** What functions that declare endpoints are given besides, and the browser does not need. */
const DOCUMENTED = new Set(['summary', 'description', 'success', 'answer', 'errors', 'query', 'headers', 'aliases'])

/** A replacement of a part of the text. */
interface Edit {
  readonly start: number
  readonly end: number
  readonly text: string
}

/**
 * Leaves of the declarations in `src/contract/` what the console needs: it sends requests and checks no value, so it has no use for
 * schemas and descriptions. They would be a tenth of the first load. In place of every schema there is `lib/no-schema.ts`. What is
 * computed for a constant that nothing uses is left out: no declaration has side effects.
 */
export function leanContract(): Plugin {
  return {
    name: 'lean-contract',
    enforce: 'pre',
    transform(code, id) {
      if (!/\/src\/contract\/[^?]*\.ts$/.test(id)) return undefined
      return { code: withoutSchemas(code), map: null }
    },
  }
}

/** The text of a module of the contract without schemas and descriptions. */
export function withoutSchemas(code: string): string {
  const edits: Edit[] = []
  let functions = 0
  let constants = 0
  // Lets the bundler leave out a call if nothing uses its value.
  const pure = ({ start }: ESTree.Span): Edit[] =>
    functions === 0 && constants > 0 ? [{ start, end: start, text: '/* @__PURE__ */ ' }] : []
  const intoFunction = () => void functions++
  const outOfFunction = () => void functions--
  const intoConstant = () => void constants++
  const outOfConstant = () => void constants--
  const atCall = (call: ESTree.CallExpression) =>
    void edits.push(
      ...(isSchema(call) ? [{ start: call.start, end: call.end, text: 'Type' }] : [...unused(call), ...pure(call)]),
    )
  const atNew = (made: ESTree.NewExpression) => void edits.push(...pure(made))
  const visitor = new Visitor({
    FunctionDeclaration: intoFunction,
    'FunctionDeclaration:exit': outOfFunction,
    FunctionExpression: intoFunction,
    'FunctionExpression:exit': outOfFunction,
    ArrowFunctionExpression: intoFunction,
    'ArrowFunctionExpression:exit': outOfFunction,
    VariableDeclarator: intoConstant,
    'VariableDeclarator:exit': outOfConstant,
    CallExpression: atCall,
    NewExpression: atNew,
  })
  visitor.visit(parseSync('contract.ts', code).program)
  return edited(code, edits)
}

/** Whether a call is one of `Type.Object(...)` and its like. */
const isSchema = ({ callee }: ESTree.CallExpression): boolean =>
  callee.type === 'MemberExpression' && callee.object.type === 'Identifier' && callee.object.name === 'Type'

/** Removes properties that the browser does not need from what a function is given. */
function unused({ callee, arguments: [given] }: ESTree.CallExpression): Edit[] {
  if (callee.type !== 'Identifier' || given?.type !== 'ObjectExpression') return []
  const isUnused =
    callee.name === 'endpoint' ? (name: string) => !OF_ENDPOINT.has(name) : (name: string) => DOCUMENTED.has(name)
  return given.properties.flatMap((property) => {
    if (property.type !== 'Property' || property.key.type !== 'Identifier') return []
    if (isUnused(property.key.name)) return [removal(property)]
    const { value } = property
    if (property.key.name !== 'body' || value.type !== 'ObjectExpression') return []
    return value.properties.filter((part) => !isKind(part)).map(removal)
  })
}

const isKind = (part: ESTree.ObjectPropertyKind): boolean =>
  part.type === 'Property' && part.key.type === 'Identifier' && part.key.name === 'kind'

/** A property that stands for nothing, so that the commas around it need no care. */
const removal = ({ start, end }: ESTree.Span): Edit => ({ start, end, text: '...{}' })

/** Applies edits; one inside another is dropped. */
function edited(code: string, edits: readonly Edit[]): string {
  let text = ''
  let at = 0
  for (const edit of [...edits].sort((one, other) => one.start - other.start || other.end - one.end)) {
    if (edit.start < at) continue
    text += code.slice(at, edit.start) + edit.text
    at = edit.end
  }
  return text + code.slice(at)
}
