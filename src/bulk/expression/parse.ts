import { type Comparison, EXPRESSION_LIMITS, type Expression, ExpressionProblem, type Scalar } from './syntax.js'
import { type Token, tokensOf } from './tokens.js'

/**
 * Parses an expression.
 * @throws ExpressionProblem that says what is wrong, and where.
 */
export function parseExpression(source: string): Expression {
  const { length } = EXPRESSION_LIMITS
  if (source.length > length) {
    throw new ExpressionProblem(`${source.length} characters; at most ${length} are allowed.`, source, length)
  }
  return new Parser(source).whole()
}

const LITERALS: ReadonlyMap<string, Scalar> = new Map<string, Scalar>([
  ['true', true],
  ['false', false],
  ['null', null],
])

const ORDERINGS = new Set(['<', '<=', '>', '>='])
const COMPARISONS = '`=`, `!=`, `<`, `<=`, `>`, `>=`, `contains`, `startsWith`, `in` or `exists`'

/** Recursive descent: `or` binds least, then `and`, then `not`. */
class Parser {
  readonly #source: string
  readonly #tokens: readonly Token[]
  #next = 0
  #depth = 0
  #comparisons = 0

  constructor(source: string) {
    this.#source = source
    this.#tokens = tokensOf(source)
  }

  whole(): Expression {
    const expression = this.#any()
    if (this.#token.kind === 'end') return expression
    return this.#refuse('expected `and`, `or` or the end.')
  }

  get #token(): Token {
    // The last token is `end`, and nothing goes beyond it.
    return this.#tokens[this.#next] ?? { kind: 'end', at: this.#source.length }
  }

  #refuse(what: string, { at }: Token = this.#token): never {
    throw new ExpressionProblem(what, this.#source, at)
  }

  #takeWord(word: string): boolean {
    const token = this.#token
    const isIt = token.kind === 'word' && token.word === word
    if (isIt) this.#next++
    return isIt
  }

  #takeSign(sign: string): boolean {
    const token = this.#token
    const isIt = token.kind === 'sign' && token.sign === sign
    if (isIt) this.#next++
    return isIt
  }

  #any(): Expression {
    return this.#chain('or', () => this.#all())
  }

  #all(): Expression {
    return this.#chain('and', () => this.#negatable())
  }

  #chain(kind: 'and' | 'or', part: () => Expression): Expression {
    const first = part()
    const parts = [first]
    while (this.#takeWord(kind)) parts.push(part())
    return parts.length === 1 ? first : { kind, parts }
  }

  #negatable(): Expression {
    const token = this.#token
    if (this.#takeWord('not')) return this.#deeper(token, () => ({ kind: 'not', part: this.#negatable() }))
    if (this.#takeSign('(')) return this.#deeper(token, () => this.#rest())
    return this.#test()
  }

  #rest(): Expression {
    const inner = this.#any()
    return this.#takeSign(')') ? inner : this.#refuse('expected `)`.')
  }

  #deeper(from: Token, inside: () => Expression): Expression {
    const { depth } = EXPRESSION_LIMITS
    if (++this.#depth > depth) this.#refuse(`more than ${depth} parentheses and \`not\`s inside each other.`, from)
    const found = inside()
    this.#depth--
    return found
  }

  #test(): Expression {
    const token = this.#token
    if (token.kind !== 'path') {
      return this.#refuse('expected a path such as `$.country`, `not` or `(`.')
    }
    const { comparisons } = EXPRESSION_LIMITS
    if (++this.#comparisons > comparisons) this.#refuse(`more than ${comparisons} comparisons.`)
    this.#next++
    return { kind: 'test', path: token.path, comparison: this.#comparison() }
  }

  #comparison(): Comparison {
    const token = this.#token
    const op = token.kind === 'sign' ? token.sign : token.kind === 'word' ? token.word : ''
    this.#next++
    if (op === 'exists') return { op }
    if (op === '=' || op === '!=' || op === 'contains') return { op, value: this.#scalar() }
    if (ORDERINGS.has(op)) return { op: op as '<', value: this.#ordered(op) }
    if (op === 'startswith') return { op: 'startsWith', value: this.#prefix() }
    if (op === 'in') return { op, values: this.#list() }
    return this.#refuse(`expected ${COMPARISONS} after the path.`, token)
  }

  #scalar(): Scalar {
    const token = this.#token
    this.#next++
    if (token.kind === 'value') return token.value
    const literal = token.kind === 'word' ? LITERALS.get(token.word) : undefined
    if (literal !== undefined) return literal
    return this.#refuse('expected a value: "text", 5, true, false or null.', token)
  }

  #ordered(op: string): string | number {
    const token = this.#token
    const value = this.#scalar()
    if (typeof value === 'string' || typeof value === 'number') return value
    return this.#refuse(`\`${op}\` compares numbers or texts.`, token)
  }

  #prefix(): string {
    const token = this.#token
    const value = this.#scalar()
    return typeof value === 'string' ? value : this.#refuse('`startsWith` takes a text.', token)
  }

  #list(): Scalar[] {
    if (!this.#takeSign('(')) this.#refuse('expected values in parentheses, such as `in ("DE", "FR")`.')
    const values = [this.#scalar()]
    while (this.#takeSign(',')) {
      if (values.length === EXPRESSION_LIMITS.values) {
        this.#refuse(`\`in\` takes at most ${EXPRESSION_LIMITS.values} values.`)
      }
      values.push(this.#scalar())
    }
    return this.#takeSign(')') ? values : this.#refuse('expected `,` or `)`.')
  }
}
