import { tryParseJson } from '../../base/index.js'
import { EXPRESSION_LIMITS, ExpressionProblem, type PathStep } from './syntax.js'

/** A token of an expression. `at`: index of its first character. */
export type Token = { readonly at: number } & (
  | { readonly kind: 'path'; readonly path: readonly PathStep[] }
  | { readonly kind: 'value'; readonly value: string | number }
  /** A word, lower-case. */
  | { readonly kind: 'word'; readonly word: string }
  | { readonly kind: 'sign'; readonly sign: string }
  | { readonly kind: 'end' }
)

// Sticky patterns without nested repetition: each reads a character at most once.
const SPACE = /[ \t\r\n]*/y
const SIGN = /&&|\|\||==|!=|<=|>=|[=<>!(),]/y
const WORD = /[A-Za-z]+/y
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const DOUBLE_QUOTED = /"(?:[^"\\\n]|\\.)*"/y
const SINGLE_QUOTED = /'(?:[^'\\\n]|\\.)*'/y
const NAME = /\.([A-Za-z_][\w-]*)/y
const INDEX = /\[ *(\d{1,9}) *\]/y
const ANY = /\[ *\* *\]/y
const OPEN = /\[ */y
const CLOSE = /\s*\]/y

/** Synonyms that people know from other languages. */
const SAME_AS: Readonly<Record<string, string>> = { '&&': 'and', '||': 'or', '!': 'not', '==': '=' }

/**
 * Cuts an expression into tokens; the last one is `end`.
 * @throws ExpressionProblem
 */
export function tokensOf(source: string): Token[] {
  const reader = new Reader(source)
  const tokens: Token[] = []
  for (;;) {
    const token = reader.next()
    tokens.push(token)
    if (token.kind === 'end') return tokens
  }
}

class Reader {
  readonly #source: string
  #at = 0

  constructor(source: string) {
    this.#source = source
  }

  next(): Token {
    this.#take(SPACE)
    const at = this.#at
    const first = this.#source[at]
    if (first === undefined) return { kind: 'end', at }
    if (first === '$') return { kind: 'path', at, path: this.#path() }
    if (first === '"' || first === "'") return { kind: 'value', at, value: this.#text() }
    const sign = this.#take(SIGN)?.[0]
    if (sign !== undefined) return signToken(sign, at)
    const word = this.#take(WORD)?.[0]
    if (word !== undefined) return { kind: 'word', at, word: word.toLowerCase() }
    return { kind: 'value', at, value: this.#number() }
  }

  #take(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#source)
    if (found) this.#at = pattern.lastIndex
    return found ?? undefined
  }

  #refuse(what: string, at = this.#at): never {
    throw new ExpressionProblem(what, this.#source, at)
  }

  #path(): PathStep[] {
    const at = this.#at
    this.#at += 1
    const path: PathStep[] = []
    for (let step = this.#step(); step !== undefined; step = this.#step()) path.push(step)
    if (path.length <= EXPRESSION_LIMITS.steps) return path
    return this.#refuse(`this path has ${path.length} steps; at most ${EXPRESSION_LIMITS.steps} are allowed.`, at)
  }

  #step(): PathStep | undefined {
    const name = this.#take(NAME)?.[1]
    if (name !== undefined) return { kind: 'member', name }
    const index = this.#take(INDEX)?.[1]
    if (index !== undefined) return { kind: 'element', index: Number(index) }
    if (this.#take(ANY)) return { kind: 'any' }
    if (this.#take(OPEN)) return this.#quotedMember()
    if (this.#source[this.#at] === '.') this.#refuse('expected a name after the dot, such as `$.country`.')
    return undefined
  }

  #quotedMember(): PathStep {
    const first = this.#source[this.#at]
    if (first !== '"' && first !== "'") {
      this.#refuse('expected a quoted name, a number or `*` in the brackets, such as `$["my key"]` or `$.items[*]`.')
    }
    const name = this.#text()
    if (!this.#take(CLOSE)) this.#refuse('expected `]`.')
    return { kind: 'member', name }
  }

  #text(): string {
    const at = this.#at
    const quoted = (this.#take(DOUBLE_QUOTED) ?? this.#take(SINGLE_QUOTED))?.[0]
    if (quoted === undefined) return this.#refuse('the quotation mark at the end of this text is missing.', at)
    const value = tryParseJson(quoted[0] === '"' ? quoted : asDoubleQuoted(quoted))
    return typeof value === 'string' ? value : this.#refuse('this text has an escape that JSON does not know.', at)
  }

  #number(): number {
    const at = this.#at
    const written = this.#take(NUMBER)?.[0]
    if (written === undefined) {
      return this.#refuse('expected a path such as `$.country`, `not` or `(`, or a value: "text", 5, true, null.')
    }
    const value = Number(written)
    const isInteger = /^-?\d+$/.test(written)
    if (Number.isFinite(value) && (!isInteger || Number.isSafeInteger(value))) return value
    return this.#refuse('this number is too large to compare exactly.', at)
  }
}

function signToken(sign: string, at: number): Token {
  const same = SAME_AS[sign] ?? sign
  return /^[a-z]/.test(same) ? { kind: 'word', at, word: same } : { kind: 'sign', at, sign: same }
}

/** The same text in the quotation marks of JSON. */
function asDoubleQuoted(quoted: string): string {
  const inner = quoted.slice(1, -1).replace(/\\.|"/g, (part) => (part === "\\'" ? "'" : part === '"' ? '\\"' : part))
  return `"${inner}"`
}
