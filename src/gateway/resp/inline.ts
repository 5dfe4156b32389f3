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
 * Splits an inline command into words, as the engine does: double quotes know `\n`, `\xff` and so on, single quotes only
 * `\'`, and quotes may begin within a word. Bytes are latin1 characters, so that none is changed. Reads the line once from
 * left to right, so that a client without a login cannot cause much work.
 * @returns undefined when the quotes do not balance
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
 * The end of the empty lines at `at`, in the bytes up to `end`. They are empty commands, and a client may send a hundred
 * thousand of them at once.
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

  /** Skips blanks. @returns whether another word follows */
  hasMore(): boolean {
    while (isBlank(this.#line.charCodeAt(this.#at))) this.#at++
    return this.#at < this.#line.length
  }

  /** Reads the word that begins here. A closing quote ends the word, so a blank has to follow it. */
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

  /** Reads an escape and stops at its last character. */
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

/** Whether the engine treats a character as a blank; false for NaN, behind the end. */
function isBlank(letter: number): boolean {
  return letter === SPACE || (letter >= TAB && letter <= CR)
}
