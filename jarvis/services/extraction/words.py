"""Closed classes of English words that the rules of extraction go by.

Lists of forms only (pronouns, auxiliaries, irregular verbs, kin, pets …). What a person can say
with them is open, so nothing here names a topic, a place or a person.
"""

from __future__ import annotations

CONTRACTIONS: dict[str, str] = {
    "i'm": "I am",
    "im": "I am",
    "i've": "I have",
    "ive": "I have",
    "i'll": "I will",
    "i'd": "I would",
    "we're": "we are",
    "we've": "we have",
    "we'll": "we will",
    "we'd": "we would",
    "it's": "it is",
    "name's": "name is",
    "that's": "that is",
    "he's": "he is",
    "she's": "she is",
    "they're": "they are",
    "there's": "there is",
    "don't": "do not",
    "dont": "do not",
    "doesn't": "does not",
    "didn't": "did not",
    "can't": "can not",
    "cannot": "can not",
    "cant": "can not",
    "won't": "will not",
    "isn't": "is not",
    "aren't": "are not",
    "wasn't": "was not",
    "weren't": "were not",
    "haven't": "have not",
    "hasn't": "has not",
    "hadn't": "had not",
    "wouldn't": "would not",
    "shouldn't": "should not",
    "couldn't": "could not",
    "wanna": "want to",
    "gonna": "going to",
    "gotta": "have to",
}

FIRST_PERSON = frozenset("i we my our me us mine ours myself ourselves".split())
"""English words by which a message speaks about its writer."""

OTHER_FIRST_PERSON = frozenset(
    # German, Dutch, French, Spanish, Portuguese, Italian, Swedish, Polish, Russian, Turkish
    "ich mein meine meinen meinem meiner wir unser unsere ik mijn wij ons onze je j'ai j'habite"
    " j'aime moi mon ma mes nous notre nos yo mi mis soy vivo trabajo tengo me nosotros nuestra"
    " nuestro eu meu minha sou moro io mio mia sono abito lavoro noi jag min mitt mina vi ja"
    " mój moja jestem mieszkam я мой моя мне меня мы наш живу работаю ben benim".split()
) - {"me"}
OTHER_FIRST_PERSON_CJK = (
    "我",
    "私",
    "僕",
    "俺",
    "わたし",
    "ぼく",
    "저는",
    "나는",
    "제가",
    "내가",
    "저의",
)

KIN = frozenset(
    "mother mom mum mama father dad papa parents parent brother brothers sister sisters sibling"
    " siblings son sons daughter daughters child children kid kids baby twins wife husband spouse"
    " partner girlfriend boyfriend fiance fiancee fiancé fiancée ex uncle aunt cousin cousins"
    " nephew niece grandmother grandma grandfather grandpa grandparents grandson granddaughter"
    " grandchildren family stepmother stepfather stepson stepdaughter friend friends roommate"
    " roommates flatmate neighbour neighbor boss colleague colleagues manager team boys girls"
    " sis bro mate in-laws mother-in-law father-in-law".split()
)
"""People whom "my …" introduces."""

OWNED = frozenset(
    "dog dogs cat cats puppy kitten kittens horse horses bird birds parrot rabbit rabbits hamster"
    " turtle fish pet pets cow cows chickens goat goats car truck bike bicycle motorcycle boat"
    " house apartment flat farm garden piano guitar violin degree job business company shop"
    " band church".split()
)
"""Lasting things whose "my …" says that the speaker has one."""

ROLE_LIKE = KIN | OWNED

IRREGULAR_PAST = frozenset(
    "was were had did forgot went came got grew knew threw flew drew made met left lost"
    " found kept slept felt dealt meant sent spent built lent bent taught caught bought"
    " brought thought fought sought sold told held said paid laid heard led fed bled bred"
    " began drank sang sank rang swam ran won sat stood understood took shook wrote rode"
    " drove rose chose spoke broke woke froze stole wore tore bore swore gave forgave ate"
    " fell saw hid bit lit hung stuck struck dug spun swung shot became overcame quit cut"
    " put hit hurt let set shut split spread bet cost moved born lay wept crept swept"
    " leapt learnt dreamt burnt died tied lied tried hired fired".split()
)
"""Past forms that do not end in -ed; ``quit``, ``put`` and the like are taken as past."""

BASE_IN_ED = frozenset("need feed breed speed bleed exceed proceed succeed embed shed wed".split())

ADVERBS_DROPPED = frozenset(
    "also really actually just absolutely definitely honestly simply truly certainly probably"
    " totally personally basically literally especially too well quite pretty much kinda"
    " obviously clearly luckily fortunately sadly unfortunately recently mostly mainly even"
    " already myself though currently presently first finally soon kind sort once".split()
)
"""Words between subject and verb that say nothing lasting. ``never``, ``usually`` … stay."""

ADVERBS_KEPT = frozenset(
    "never always usually often sometimes rarely still only no longer hardly seldom generally"
    " regularly frequently ever both all".split()
)

INTERJECTIONS = frozenset(
    "hi hello hey howdy greetings yo hiya heya hullo ahoy g'day gday sup hallo hola ciao bonjour"
    " salut moin servus yes yeah yep yup yea no nope nah ok okay oh ah aw aww wow"
    " well nice cool great good awesome wonderful lol haha hehe ha hmm hm um uh sure right true"
    " thanks thank gotcha alright anyway so and but also plus because or me gosh damn btw fyi"
    " actually honestly sorry please indeed exactly same here fine amazing interesting sweet"
    " still then now today too morning evening afternoon"
    " mondays tuesdays wednesdays thursdays fridays saturdays sundays weekends".split()
)
"""Words that may stand before a clause without being part of it."""

AUXILIARIES = frozenset(
    "am is are was were be been being have has had do does did will would can could shall should"
    " may might must".split()
)

PLAIN_VERBS = frozenset(
    "live work own have like love speak run play come study teach hate want go eat drink sell"
    " collect keep grow write build make".split()
)
"""Verbs that are seen as such after a plural subject ("my parents live …")."""

QUESTION_STARTS = frozenset(
    "what who whom whose which where when why how do does did is are am was were can could will"
    " would shall should may might have has had any".split()
)

SUBORDINATORS = frozenset(
    "when whenever if unless while as than that what where who whom whose how why whether until"
    " till before after once though although since which like all think know said say says hope"
    " guess believe thought wish wished sure heard told suppose mean feel felt everything anything"
    " thing things person people one reason saying stating claiming pretending".split()
)
"""After one of these, "I …" is not a statement of its own (``since``: see the clause cutter)."""

FRAME_WORDS = frozenset(
    "user users user's the a an is are was were be been being am has have had does do did will"
    " would can could may might must should not no of to in on at for from with by and or as than"
    " that which who their theirs them they themselves he she his her him it its this there"
    " name named called years year old age job also about into".split()
)
"""Words that a fact may use although the message does not."""
