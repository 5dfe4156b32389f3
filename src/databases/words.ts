/** First words of slugs: friendly in every combination. */
export const ADJECTIVES: readonly string[] = (
  'able amber agile ample apt azure balmy bold brave bright brisk broad calm candid careful cheery civil clear clever ' +
  'coral cosy crisp curious daring deep eager early easy even fair fast fine firm fond frank free fresh gentle glad ' +
  'golden good grand green handy happy hardy honest humble jolly keen kind lively loyal lucid lucky lunar mellow merry ' +
  'mighty modest neat nimble noble open patient placid plucky polite prime proud quick quiet rapid ready regal robust ' +
  'rosy safe sharp silver smart smooth snug solar solid sound spry stable steady still sturdy sunny sure swift tidy ' +
  'trim true trusty upbeat urban valid vast vivid warm wise witty young zesty'
).split(' ')

/** Second words of slugs. */
export const NOUNS: readonly string[] = (
  'anchor arbor badger basin bay beacon beaver bison boat breeze bridge brook cabin canoe canyon cedar cliff cloud ' +
  'comet compass cove crane creek delta dolphin dune eagle falcon fern ferry finch fjord forest fox garden glade ' +
  'grove gull harbor hare hawk heron hill island jetty kayak kestrel lagoon lake lantern lark ledge lighthouse lily ' +
  'lynx maple marina marlin marsh meadow mesa moose moss oak oasis orca osprey otter owl pebble pelican pier pine ' +
  'plover pond port prairie puffin quay rain raven reef ridge river robin sail salmon seal shell shore sloop spruce ' +
  'squid star stone stream swan tern tide trail trout tulip valley vessel walrus wave whale willow wren yacht'
).split(' ')
