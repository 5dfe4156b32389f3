/**
 * The arithmetic of `Upstash-Retry-Delay` (reference queue 2.3): numbers, `+ - * /`, parentheses, the variable
 * `retried` and a few functions. An expression is parsed into a closure and never evaluated as code. Its
 * length and depth are bounded, so that neither parsing nor running it can take long.
 *
 *   sum     = product { ("+" | "-") product }
 *   product = unary { ("*" | "/") unary }
 *   unary   = ("+" | "-") unary | atom
 *   atom    = number | "retried" | name "(" sum { "," sum } ")" | "(" sum ")"
 */

/** A parsed expression: takes the number of failed attempts before this retry (0 before the first), returns milliseconds. */
export type RetryDelay = (retried: number) => number

const LONGEST = 512
const DEEPEST = 32
const TOKEN = /\s*(?:(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)|([A-Za-z]+)|([-+*/(),]))/y

interface Fn {
  readonly least: number
  readonly most: number
  readonly apply: (...values: number[]) => number
}

const FUNCTIONS: ReadonlyMap<string, Fn> = new Map([
  ['pow', { least: 2, most: 2, apply: (base: number, exponent: number) => base ** exponent }],
  ['sqrt', { least: 1, most: 1, apply: Math.sqrt }],
  ['abs', { least: 1, most: 1, apply: Math.abs }],
  ['exp', { least: 1, most: 1, apply: Math.exp }],
  ['floor', { least: 1, most: 1, apply: Math.floor }],
  ['ceil', { least: 1, most: 1, apply: Math.ceil }],
  ['round', { least: 1, most: 1, apply: Math.round }],
  ['min', { least: 1, most: 16, apply: Math.min }],
  ['max', { least: 1, most: 16, apply: Math.max }],
])

type Token =
  | { readonly kind: 'number'; readonly value: number }
  | { readonly kind: 'name' | 'sign' | 'end'; readonly text: string }

class Problem extends Error {}

function tokenize(text: string): Token[] {
  const tokens: Token[] = []
  let at = 0
  for (const end = text.trimEnd().length; at < end; at = TOKEN.lastIndex) {
    TOKEN.lastIndex = at
    const match = TOKEN.exec(text)
    if (!match)
      throw new Problem(`"${text.slice(at).trim().charAt(0)}" at position ${at + 1} is not part of the grammar`)
    const [, number, name, sign] = match
    if (number !== undefined) tokens.push({ kind: 'number', value: Number(number) })
    else if (name !== undefined) tokens.push({ kind: 'name', text: name })
    else tokens.push({ kind: 'sign', text: sign ?? '' })
  }
  return tokens
}

const END: Token = { kind: 'end', text: 'the end' }
const shown = (token: Token): string => (token.kind === 'number' ? String(token.value) : token.text)

class Parser {
  readonly #tokens: readonly Token[]
  #next = 0
  #depth = 0

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens
  }

  whole(): RetryDelay {
    const expression = this.#sum()
    const left = this.#peek()
    if (left.kind !== 'end') throw new Problem(`unexpected ${shown(left)}`)
    return expression
  }

  #peek(): Token {
    return this.#tokens[this.#next] ?? END
  }

  #takeSign(...signs: string[]): string | undefined {
    const token = this.#peek()
    if (token.kind !== 'sign' || !signs.includes(token.text)) return undefined
    this.#next++
    return token.text
  }

  #expectSign(sign: string): void {
    if (this.#takeSign(sign) === undefined) throw new Problem(`expected "${sign}" but found ${shown(this.#peek())}`)
  }

  #sum(): RetryDelay {
    if (++this.#depth > DEEPEST) throw new Problem(`it is nested deeper than ${DEEPEST} levels`)
    let left = this.#product()
    for (let sign = this.#takeSign('+', '-'); sign !== undefined; sign = this.#takeSign('+', '-')) {
      const [a, b] = [left, this.#product()]
      left = sign === '+' ? (n) => a(n) + b(n) : (n) => a(n) - b(n)
    }
    this.#depth--
    return left
  }

  #product(): RetryDelay {
    let left = this.#unary()
    for (let sign = this.#takeSign('*', '/'); sign !== undefined; sign = this.#takeSign('*', '/')) {
      const [a, b] = [left, this.#unary()]
      left = sign === '*' ? (n) => a(n) * b(n) : (n) => a(n) / b(n)
    }
    return left
  }

  #unary(): RetryDelay {
    let negative = false
    for (let sign = this.#takeSign('+', '-'); sign !== undefined; sign = this.#takeSign('+', '-')) {
      if (sign === '-') negative = !negative
    }
    const atom = this.#atom()
    return negative ? (n) => -atom(n) : atom
  }

  #atom(): RetryDelay {
    const token = this.#peek()
    if (token.kind === 'number') {
      this.#next++
      return () => token.value
    }
    if (token.kind === 'name') {
      this.#next++
      return token.text === 'retried' ? (n) => n : this.#call(token.text)
    }
    this.#expectSign('(')
    const inner = this.#sum()
    this.#expectSign(')')
    return inner
  }

  #call(name: string): RetryDelay {
    const fn = FUNCTIONS.get(name)
    if (!fn) throw new Problem(`"${name}" is neither "retried" nor one of ${[...FUNCTIONS.keys()].join(', ')}`)
    this.#expectSign('(')
    const args = [this.#sum()]
    while (this.#takeSign(',') !== undefined) args.push(this.#sum())
    this.#expectSign(')')
    if (args.length < fn.least || args.length > fn.most) {
      throw new Problem(
        `${name} takes ${fn.least === fn.most ? fn.least : `${fn.least} to ${fn.most}`} values; found ${args.length}`,
      )
    }
    return (n) => fn.apply(...args.map((arg) => arg(n)))
  }
}

/** Parses an expression. Returns the problem in words if it is not valid. */
export function parseRetryDelay(text: string): { readonly delay: RetryDelay } | { readonly problem: string } {
  if (text.length > LONGEST) return { problem: `it is longer than ${LONGEST} characters` }
  try {
    return { delay: new Parser(tokenize(text)).whole() }
  } catch (error) {
    if (error instanceof Problem) return { problem: error.message }
    throw error
  }
}
