/**
 * Replaces everything but code with blanks, so that a word in a comment or string never looks like a call. Positions
 * and line breaks stay. The characters before a `/` decide whether it begins a regular expression or is a division,
 * which is right for formatted code.
 */
const TOKENS =
  /\/\/[^\n]*|\/\*[\s\S]*?\*\/|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|(?<=[(,=:[!&|?{};\n>]\s*|return\s+)\/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[a-z]*/g

const blank = (text) => text.replace(/[^\n]/g, ' ')

/** The code alone: comments, strings and regular expressions are blanks. Code inside a template literal stays. */
export function codeOnly(source) {
  return source.replace(TOKENS, (token) => (token.startsWith('`') ? templateCode(token) : blank(token)))
}

function templateCode(token) {
  let kept = ''
  let depth = 0
  for (let i = 0; i < token.length; i++) {
    const opens = token[i] === '{' && (depth > 0 || token[i - 1] === '$')
    if (opens) depth++
    else if (token[i] === '}' && depth > 0) depth--
    kept += depth > 0 || token[i] === '\n' ? token[i] : ' '
  }
  return kept
}

/** The source without its comments; strings stay. */
export function withoutComments(source) {
  return source.replace(TOKENS, (token) => (/^\/[/*]/.test(token) ? blank(token) : token))
}
