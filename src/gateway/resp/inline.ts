const BACKSLASH = 0x5c
const DOUBLE_QUOTE = 0x22
const SINGLE_QUOTE = 0x27
const SPACE = 0x20
const TAB = 9
const LF = 10
const CR = 13

/** Escapes inside double quotes, by the letter after the backslash. */
const ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', b: '\b', a: '\x07' }
const HEX_ESCAPE = /x([0-9a-fA-F]{2})/y

/**
 * Splits a line typed by hand into words, as the engine does: double quotes know `\n`, `\xff` and so on, single
 * quotes only `\'`, and quotes may begin within a word. Bytes travel as latin1 characters so that none is changed. The
 * line is read once from left to right, since anybody may send one before login.
 * @returns `undefined` when the quotes do not balance.
 */
export function splitInline(line: string): readonly string[] | undefined {
  const words: string[] = []
  const reader = new WordReader(line)
  while (reader.hasMore()) {
    const word = reader.next()
    if (word === undefined) return undefined
    words.push(word)
  }
  return words
}

/**
 * Where the empty lines at `at` end, of which nothing is known behind `end`. They are commands of nothing, and a client may
 * send a hundred thousand of them at once.
 */
export function behindEmptyLines(bytes: Buffer, at: number, end: number): number {
  let behind = at
  for (;;) {
    if (behind < end && bytes[behind] === LF) behind++
    else if (behind + 1 < end && bytes[behind] === CR && bytes[behind + 1] === LF) behind += 2
    else return behind
  }
}

class WordReader {
  readonly #line: string
  #at = 0

  constructor(line: string) {
    this.#line = line
  }

  /** Goes to the beginning of the next word. @returns whether there is one. */
  hasMore(): boolean {
    while (isBlank(this.#line.charCodeAt(this.#at))) this.#at++
    return this.#at < this.#line.length
  }

  /** The word that begins here. A quote ends its word, so what follows it has to be blank. */
  next(): string | undefined {
    const bare = this.#bare()
    if (this.#isOver) return bare
    const quoted = this.#line.charCodeAt(this.#at++) === DOUBLE_QUOTE ? this.#doubleQuoted() : this.#singleQuoted()
    return quoted === undefined || !this.#isOver ? undefined : bare + quoted
  }

  get #isOver(): boolean {
    return this.#at >= this.#line.length || isBlank(this.#line.charCodeAt(this.#at))
  }

  #bare(): string {
    const from = this.#at
    for (; this.#at < this.#line.length; this.#at++) {
      const letter = this.#line.charCodeAt(this.#at)
      if (letter === DOUBLE_QUOTE || letter === SINGLE_QUOTE || isBlank(letter)) break
    }
    return this.#line.slice(from, this.#at)
  }

  #doubleQuoted(): string | undefined {
    let text = ''
    for (; this.#at < this.#line.length; this.#at++) {
      const letter = this.#line.charCodeAt(this.#at)
      if (letter === DOUBLE_QUOTE) return this.#close(text)
      text += letter === BACKSLASH && this.#at + 1 < this.#line.length ? this.#escaped() : this.#line[this.#at]
    }
    return undefined
  }

  #singleQuoted(): string | undefined {
    let text = ''
    for (; this.#at < this.#line.length; this.#at++) {
      const letter = this.#line.charCodeAt(this.#at)
      if (letter === SINGLE_QUOTE) return this.#close(text)
      if (letter === BACKSLASH && this.#line.charCodeAt(this.#at + 1) === SINGLE_QUOTE) this.#at++
      text += this.#line[this.#at]
    }
    return undefined
  }

  /** What stands at a backslash and behind it; the position is that of its last character then. */
  #escaped(): string {
    HEX_ESCAPE.lastIndex = ++this.#at
    const hex = HEX_ESCAPE.exec(this.#line)?.[1]
    if (hex !== undefined) {
      this.#at += 2
      return String.fromCharCode(Number.parseInt(hex, 16))
    }
    const letter = this.#line[this.#at] ?? ''
    return ESCAPES[letter] ?? letter
  }

  #close(text: string): string {
    this.#at++
    return text
  }
}

/** What the engine takes for a blank; none of a character that is not there. */
function isBlank(letter: number): boolean {
  return letter === SPACE || (letter >= TAB && letter <= CR)
}
